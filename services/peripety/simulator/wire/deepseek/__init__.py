"""DeepSeek's API: Chat Completions with visible reasoning."""

from peripety.simulator.wire.deepseek.wire import DeepSeek

__all__ = ["DeepSeek"]
