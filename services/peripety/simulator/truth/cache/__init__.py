"""Prompt caches: what each provider keeps of a prompt, and what the next one finds of it."""
