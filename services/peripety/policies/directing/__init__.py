"""Requests that reach what scenarios miss, and suites as small as they can be."""
