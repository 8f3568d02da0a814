"""Ollama's own API."""

from peripety.simulator.wire.ollama.wire import Ollama

__all__ = ["Ollama"]
