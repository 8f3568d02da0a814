"""The Gemini API: answers whole and streamed, token counts, explicit caches, models."""

from peripety.simulator.wire.gemini.wire import Gemini

__all__ = ["Gemini"]
