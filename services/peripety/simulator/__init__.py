"""The scripted LLM: a server with true semantics that speaks the wire formats of the providers."""
