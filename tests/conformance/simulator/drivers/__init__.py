"""The SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.simulator.drivers.anthropic import Anthropic
from conformance.simulator.drivers.deepseek import DeepSeek
from conformance.simulator.drivers.gemini import Gemini
from conformance.simulator.drivers.ollama import Ollama
from conformance.simulator.drivers.openai_chat import OpenAiChat
from conformance.simulator.drivers.openai_responses import OpenAiResponses

if TYPE_CHECKING:
    from conformance.simulator.driver import Driver

__all__ = ["DRIVERS"]

DRIVERS: tuple[type[Driver], ...] = (OpenAiChat, OpenAiResponses, DeepSeek, Anthropic, Gemini, Ollama)
