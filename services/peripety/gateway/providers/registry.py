"""Provider registry of a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.config import Config, ProviderName
from peripety.errors import FailedPreconditionError
from peripety.gateway.catalogue import Catalogue
from peripety.gateway.choosing import choose_provider, unknown_provider
from peripety.gateway.providers.anthropic import MessagesWire
from peripety.gateway.providers.base import Call
from peripety.gateway.providers.gemini import GeminiWire
from peripety.gateway.providers.http import HttpProvider
from peripety.gateway.providers.ollama import OllamaWire
from peripety.gateway.providers.openai import AZURE, DEEPSEEK, GENERIC, OPENAI, ChatCompletionsWire
from peripety.gateway.providers.openai_responses import ResponsesWire
from peripety.gateway.providers.settings import endpoint_of, is_set_up
from peripety.gateway.providers.transport import Timeouts

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.providers.base import Provider
    from peripety.gateway.providers.wire import Wire

__all__ = ["WIRES", "Answerer", "Providers"]

WIRES: dict[ProviderName, Wire] = {
    ProviderName.OPENAI: ChatCompletionsWire(OPENAI),
    ProviderName.OPENAI_RESPONSES: ResponsesWire(),
    ProviderName.AZURE: ChatCompletionsWire(AZURE),
    ProviderName.DEEPSEEK: ChatCompletionsWire(DEEPSEEK),
    ProviderName.GENERIC: ChatCompletionsWire(GENERIC),
    ProviderName.ANTHROPIC: MessagesWire(),
    ProviderName.GEMINI: GeminiWire(),
    ProviderName.OLLAMA: OllamaWire(),
    # Of the protocols of the scripted LLM, the one with the most expressive answers.
    ProviderName.SCRIPTED: MessagesWire(),
}


@dataclass(frozen=True, slots=True)
class Answerer:
    """The model and account that would answer a request.

    Attributes:
        provider: the provider's name.
        model: the requested model.
        account: a digest of server and key: answers to one account must not be served to another.
    """

    provider: str
    model: str
    account: str


class Providers:
    """The providers of one process, each created on first use.

    Args:
        config: the settings; the configured provider is created at once, so that a missing setting is
            reported at start-up.

    Raises:
        FailedPreconditionError: the configured provider lacks a setting; the message names the variable.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._timeouts = Timeouts(
            connect=config.provider_connect_seconds,
            first_event=config.provider_first_event_seconds,
            between_chunks=config.provider_pause_seconds,
            total=config.provider_total_seconds,
        )
        self._catalogue = Catalogue.load(config.models)
        self._made: dict[ProviderName, Provider] = {}
        self._default = self._get(config.model_provider)

    def select(self, request: GenerateRequest, model: str | None = None) -> tuple[Provider, Call]:
        """Return the provider for a request, and the call to make.

        Args:
            request: the request.
            model: `provider/model` or a model that replaces the request's own.

        Raises:
            FailedPreconditionError: the provider lacks a setting, or no model is named anywhere.
            InvalidArgumentError: the model has no known provider.
        """
        chosen, name = choose_provider(model or request.model, self._config.model_provider, self._is_set_up)
        if chosen is None:
            raise unknown_provider()
        provider = self._get(chosen)
        name = name or provider.model or ""
        if not name:
            raise FailedPreconditionError(
                f"provider {provider.name}: model is missing; set MODEL_NAME, or use"
                f" {provider.name}/<model> in the request",
                code="PROVIDER_NOT_CONFIGURED",
            )
        return provider, Call(request, name, self._catalogue.find(provider.name, name))

    def answerer(self, request: GenerateRequest) -> Answerer:
        """Return the model and account that would answer a request; raises the errors of `first`."""
        provider, call = self.first(request)
        return Answerer(provider.name, call.model, provider.account)

    def first(self, request: GenerateRequest) -> tuple[Provider, Call]:
        """Return the first configured provider among the request's model and its fallbacks, and the call.

        Raises:
            FailedPreconditionError: the error of the first one, if none is configured.
        """
        failures = []
        for model in (request.model, *request.fallback_models):
            try:
                return self.select(request, model)
            except FailedPreconditionError as error:
                failures.append(error)
        raise failures[0]

    @property
    def default(self) -> tuple[str, str] | None:
        """Return the default provider and model; None without a default model."""
        return (self._default.name, self._default.model) if self._default.model else None

    async def aclose(self) -> None:
        """Close the connections of all providers."""
        for provider in self._made.values():
            await provider.aclose()

    def _is_set_up(self, name: ProviderName) -> bool:
        return is_set_up(name, self._config)

    def _get(self, name: ProviderName) -> Provider:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: ProviderName) -> Provider:
        if name is ProviderName.OFFLINE:
            # Imported lazily: its language data is loaded only if it answers.
            from peripety.gateway.providers.offline import OfflineProvider  # noqa: PLC0415

            return OfflineProvider()
        return HttpProvider(endpoint_of(name, self._config), WIRES[name], self._timeouts)
