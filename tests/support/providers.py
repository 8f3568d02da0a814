"""Every provider of the gateway, asked at the scripted LLM; a new one is a line in the table."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from peripety.core.call_context import Clock
from peripety.core.config import Config, ProviderLimits, ProviderName
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


KEY = "sk-canary-1234567890"


@dataclass(frozen=True)
class Spoken:
    """How a provider is asked at the scripted LLM.

    Attributes:
        name: the provider.
        settings: the settings are `<settings>_api_base` and `<settings>_api_key`.
        model: a model that calls tools, and reasons of its own accord.
        path: where its API begins, behind the URL of the scripted LLM.
        shows_reasoning: whether it tells what the model thinks, unasked.
        tells_refusals: whether it says that the model declined, and not just in which words.
        tells_filters: whether it says that a filter ended the answer.
        numbers_chunks: whether its chunks have numbers, and its texts come a second time as a whole.
    """

    name: ProviderName
    settings: str
    model: str
    path: str = ""
    shows_reasoning: bool = False
    tells_refusals: bool = True
    tells_filters: bool = True
    numbers_chunks: bool = False

    def __str__(self) -> str:
        return self.name.value


PROVIDERS = (
    Spoken(ProviderName.ANTHROPIC, "anthropic", "claude-opus-5-5"),
    Spoken(ProviderName.OPENAI, "openai", "gpt-5", "/v1"),
    Spoken(ProviderName.OPENAI_RESPONSES, "openai", "gpt-5", "/v1", numbers_chunks=True),
    Spoken(ProviderName.GENERIC, "openai", "test-model", "/v1"),
    Spoken(ProviderName.GEMINI, "gemini", "gemini-2.5-pro", shows_reasoning=True),
    Spoken(
        ProviderName.OLLAMA,
        "ollama",
        "llama3",
        shows_reasoning=True,
        tells_refusals=False,
        tells_filters=False,
    ),
    Spoken(ProviderName.DEEPSEEK, "deepseek", "deepseek-v4-pro", shows_reasoning=True, tells_refusals=False),
    Spoken(ProviderName.AZURE, "azure", "gpt-5"),
    Spoken(ProviderName.SCRIPTED, "scripted", "scripted"),
)


def config_of(spoken: Spoken, url: str, **settings: Any) -> Config:
    """The settings under which a provider is asked at the scripted LLM with this URL."""
    at_provider: dict[str, Any] = {f"{spoken.settings}_api_base": f"{url}{spoken.path}"}
    if f"{spoken.settings}_api_key" in Config.model_fields:
        at_provider[f"{spoken.settings}_api_key"] = SecretStr(KEY)
    chosen = {"model_provider": spoken.name, "model_name": spoken.model}
    unlimited = {spoken.name.value: ProviderLimits()}
    return Config(**{**at_provider, **chosen, "limits": unlimited, **settings})


async def at_once(_seconds: float) -> None:
    """Wait without waiting, so that no test waits for a retry."""
    await asyncio.sleep(0)


@asynccontextmanager
async def gateway_of(spoken: Spoken, url: str, **settings: Any) -> AsyncIterator[LocalModelGateway]:
    """A gateway that asks a provider at the scripted LLM, and does not pause before it asks again."""
    config = config_of(spoken, url, **settings)
    providers = ProviderRegistry(config)
    try:
        yield LocalModelGateway(providers, CallExecutor(config, Clock(sleep=at_once)))
    finally:
        await providers.aclose()
