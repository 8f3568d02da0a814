"""Which provider answers: chosen by the configuration, or by a request's `provider/model`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from peripety.config import Config, ProviderName
from peripety.gateway.providers.offline import OfflineProvider
from peripety.gateway.providers.openai import GENERIC, OPENAI, OpenAIProvider
from peripety.gateway.providers.transport import Timeouts

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.providers.base import Provider

__all__ = ["Answerer", "Providers"]


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who would answer a request.

    Attributes:
        provider: the provider's name.
        model: the model as it is asked for; None for the provider's default.
        account: a digest of the server and the key that it would be asked with: what one account was
            answered is none of another's business.
    """

    provider: str
    model: str | None
    account: str


class Providers:
    """The providers of one process, each made when it is first needed.

    Args:
        config: the settings; the configured provider is made at once, so that a missing setting shows
            when the process starts.

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
        self._made: dict[ProviderName, Provider] = {}
        self._default = self._get(config.model_provider)

    def select(self, request: GenerateRequest) -> tuple[Provider, GenerateRequest]:
        """Return the provider for a request, and the request with a bare model name.

        A model name may contain slashes of its own: only a provider's name before the first one counts.
        """
        prefix, _, model = (request.model or "").partition("/")
        chosen = next((name for name in ProviderName if name.value == prefix), None)
        if chosen is None:
            return self._default, request
        return self._get(chosen), replace(request, model=model or None)

    def answerer(self, request: GenerateRequest) -> Answerer:
        """Return who would answer a request, without asking."""
        provider, request = self.select(request)
        key = self._config.openai_api_key
        secret = f"{self._config.openai_api_base or ''}\n{key.get_secret_value() if key else ''}"
        return Answerer(provider.name, request.model or provider.model, sha256(secret.encode()).hexdigest())

    async def aclose(self) -> None:
        """Let go of every provider's connections."""
        for provider in self._made.values():
            await provider.aclose()

    def _get(self, name: ProviderName) -> Provider:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: ProviderName) -> Provider:
        if name is ProviderName.OFFLINE:
            return OfflineProvider()
        # The configured model belongs to the configured provider.
        model = self._config.model_name if name is self._config.model_provider else None
        return OpenAIProvider(
            OPENAI if name is ProviderName.OPENAI else GENERIC,
            base_url=self._config.openai_api_base,
            api_key=self._config.openai_api_key,
            model=model,
            timeouts=self._timeouts,
        )
