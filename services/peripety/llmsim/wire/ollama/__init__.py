"""Ollama API."""
