"""What the providers count, cache, limit and bill: their rules, on data that is dated."""
