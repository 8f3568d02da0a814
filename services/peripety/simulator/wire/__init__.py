"""Wire formats of the providers, one module per API."""
