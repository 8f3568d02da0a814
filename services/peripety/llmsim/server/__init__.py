"""HTTP server of the scripted LLM."""
