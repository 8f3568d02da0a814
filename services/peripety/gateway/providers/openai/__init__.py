"""OpenAI's Chat Completions, and every server that speaks them."""

from peripety.gateway.providers.openai.dialect import GENERIC, OPENAI, Dialect
from peripety.gateway.providers.openai.wire import ChatCompletionsWire

__all__ = ["GENERIC", "OPENAI", "ChatCompletionsWire", "Dialect"]
