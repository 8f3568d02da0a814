"""The Gemini API: complete and streamed answers, token counts, explicit caches, models."""

from peripety.simulator.wire.gemini.wire import Gemini

__all__ = ["Gemini"]
