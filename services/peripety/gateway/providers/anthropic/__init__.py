"""Anthropic's Messages API, in both of its versions."""

from peripety.gateway.providers.anthropic.wire import MessagesWire

__all__ = ["MessagesWire"]
