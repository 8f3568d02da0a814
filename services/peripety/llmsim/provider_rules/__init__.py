"""Provider rules for tokens, caches, limits and bills, as dated data."""
