"""Ollama's native API."""

from peripety.simulator.wire.ollama.wire import Ollama

__all__ = ["Ollama"]
