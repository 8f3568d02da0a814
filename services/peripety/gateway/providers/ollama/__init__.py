"""Ollama's own API."""

from peripety.gateway.providers.ollama.wire import OllamaWire

__all__ = ["OllamaWire"]
