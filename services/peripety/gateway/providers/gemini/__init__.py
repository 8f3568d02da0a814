"""Gemini's `generateContent`."""

from peripety.gateway.providers.gemini.wire import GeminiWire

__all__ = ["GeminiWire"]
