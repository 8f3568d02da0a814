"""OpenAI's Responses API, without storage on the server."""

from peripety.gateway.providers.openai_responses.wire import ResponsesWire

__all__ = ["ResponsesWire"]
