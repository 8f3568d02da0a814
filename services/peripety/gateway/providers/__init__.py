"""Model providers and their wire formats."""
