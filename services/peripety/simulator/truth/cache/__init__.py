"""Prompt cache emulation: what each provider caches of a prompt, and what the next prompt reads."""
