"""Scenario files: what the scripted LLM says, to what, how fast, and what goes wrong."""
