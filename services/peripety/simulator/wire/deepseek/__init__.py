"""DeepSeek's API: Chat Completions whose models think aloud."""

from peripety.simulator.wire.deepseek.wire import DeepSeek

__all__ = ["DeepSeek"]
