"""LLM gateway: providers, calls, budgets, caches, conversations."""
