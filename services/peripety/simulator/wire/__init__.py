"""The wire formats of the providers, one module for each API."""
