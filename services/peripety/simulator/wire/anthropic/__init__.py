"""Anthropic's Messages API, in both of its versions."""

from peripety.simulator.wire.anthropic.wire import Anthropic

__all__ = ["Anthropic"]
