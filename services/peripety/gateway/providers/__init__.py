"""Providers: adapters from neutral requests to provider calls, and from their answers to neutral events."""
