"""OpenAI's Chat Completions API, and compatible servers."""

from peripety.gateway.providers.openai.dialect import AZURE, DEEPSEEK, GENERIC, OPENAI, Dialect
from peripety.gateway.providers.openai.wire import ChatCompletionsWire

__all__ = ["AZURE", "DEEPSEEK", "GENERIC", "OPENAI", "ChatCompletionsWire", "Dialect"]
