"""Wire formats of the providers."""
