"""OpenAI's Chat Completions, and every server that speaks them."""

from peripety.gateway.providers.openai.dialect import GENERIC, OPENAI, Dialect
from peripety.gateway.providers.openai.provider import OpenAIProvider

__all__ = ["GENERIC", "OPENAI", "Dialect", "OpenAIProvider"]
