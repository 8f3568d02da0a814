"""Registry of all served APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.wire.anthropic import Anthropic
from peripety.simulator.wire.deepseek import DeepSeek
from peripety.simulator.wire.gemini import Gemini
from peripety.simulator.wire.ollama import Ollama
from peripety.simulator.wire.openai_chat import OpenAiChat
from peripety.simulator.wire.openai_responses import OpenAiResponses

if TYPE_CHECKING:
    from peripety.simulator.wire.base import Wire

__all__ = ["WIRES"]

WIRES: tuple[Wire, ...] = (OpenAiChat(), OpenAiResponses(), DeepSeek(), Anthropic(), Gemini(), Ollama())
"""The APIs; the first is used if a request is ambiguous."""
