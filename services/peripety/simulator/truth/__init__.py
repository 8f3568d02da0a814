"""Rules of the providers: token counts, prompt caches, rate limits and bills, from dated data."""
