"""OpenAI's Chat Completions, and every server that speaks them."""

from peripety.gateway.providers.openai.dialect import AZURE, DEEPSEEK, GENERIC, OPENAI, Dialect
from peripety.gateway.providers.openai.wire import ChatCompletionsWire

__all__ = ["AZURE", "DEEPSEEK", "GENERIC", "OPENAI", "ChatCompletionsWire", "Dialect"]
