"""Lint of scripts."""
