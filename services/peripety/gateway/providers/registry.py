"""Provider registry of a process: endpoints and requirements from the configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.core.config import Config, ProviderName
from peripety.errors import FailedPreconditionError
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.provider_selection import choose_provider, unknown_provider_error
from peripety.gateway.providers.anthropic.response_stream import MessagesWire
from peripety.gateway.providers.gemini.response_stream import GeminiWire
from peripety.gateway.providers.http_provider import HttpProvider
from peripety.gateway.providers.http_transport import StreamTimeouts
from peripety.gateway.providers.ollama import OllamaWire
from peripety.gateway.providers.openai.dialect import AZURE, DEEPSEEK, GENERIC, OPENAI
from peripety.gateway.providers.openai.response_stream import ChatCompletionsWire
from peripety.gateway.providers.openai_responses.response_stream import ResponsesWire
from peripety.gateway.providers.provider import Endpoint, ProviderCall

if TYPE_CHECKING:
    from pydantic import SecretStr

    from peripety.gateway.providers.provider import Provider
    from peripety.gateway.providers.wire_protocol import WireProtocol
    from peripety.gateway.types.request import GenerateRequest


@dataclass(frozen=True, slots=True)
class _ProviderRequirements:
    """Required settings of a provider.

    Attributes:
        settings: the variables are `<settings>_API_BASE` and `<settings>_API_KEY`.
        base_url: the default base URL; None if it has to be set.
        key: whether a key is required.
        other_key: a common alternative variable for the key.
        model: the default model; None if it has to be set.
        versions: version prefixes of its API paths; a base URL may end with one or not.
    """

    settings: str
    base_url: str | None
    key: bool
    other_key: str = ""
    model: str | None = None
    versions: tuple[str, ...] = ()

    @property
    def base_variable(self) -> str:
        return f"{self.settings}_API_BASE"

    @property
    def key_variable(self) -> str:
        return f"{self.settings}_API_KEY"


_OPENAI_REQUIREMENTS = _ProviderRequirements("OPENAI", "https://api.openai.com/v1", key=True)
_REQUIREMENTS = {
    ProviderName.OPENAI: _OPENAI_REQUIREMENTS,
    ProviderName.OPENAI_RESPONSES: _OPENAI_REQUIREMENTS,
    ProviderName.ANTHROPIC: _ProviderRequirements(
        "ANTHROPIC",
        "https://api.anthropic.com",
        key=True,
        versions=("/v1",),
    ),
    ProviderName.GEMINI: _ProviderRequirements(
        "GEMINI",
        "https://generativelanguage.googleapis.com",
        key=True,
        other_key="GOOGLE_API_KEY",
        versions=("/v1beta", "/v1"),
    ),
    ProviderName.DEEPSEEK: _ProviderRequirements("DEEPSEEK", "https://api.deepseek.com", key=True),
    ProviderName.OLLAMA: _ProviderRequirements(
        "OLLAMA",
        "http://127.0.0.1:11434",
        key=False,
        versions=("/v1", "/api"),
    ),
    ProviderName.AZURE: _ProviderRequirements("AZURE", None, key=True, versions=("/openai/v1", "/openai")),
    ProviderName.GENERIC: _ProviderRequirements("OPENAI", None, key=False),
    ProviderName.SCRIPTED: _ProviderRequirements("SCRIPTED", None, key=False, model="scripted"),
}


def endpoint_of(name: ProviderName, config: Config) -> Endpoint:
    """Return the endpoint of an HTTP provider.

    Raises:
        FailedPreconditionError: a setting is missing; the message names its variable.
    """
    needs = _requirements_of(name, config)
    base_url, key = _configured_values(needs, config)
    base_url = base_url or needs.base_url
    if base_url is None:
        raise _missing_setting_error(needs.base_variable, name, "server URL")
    if needs.key and key is None:
        raise _missing_setting_error(needs.key_variable, name, "API key")
    # The configured model belongs to the configured provider.
    model = config.model_name if name is config.model_provider else None
    base_url = _strip_version(base_url.rstrip("/"), needs)
    return Endpoint(name.value, base_url, key, model or needs.model, needs.base_variable, needs.key_variable)


def is_configured(name: ProviderName, config: Config) -> bool:
    """Return True if all required settings of the provider are present."""
    if name not in _REQUIREMENTS:
        return True
    needs = _requirements_of(name, config)
    base_url, key = _configured_values(needs, config)
    return (key is not None or not needs.key) and (base_url or needs.base_url) is not None


def _requirements_of(name: ProviderName, config: Config) -> _ProviderRequirements:
    needs = _REQUIREMENTS[name]
    configured = name is ProviderName.OLLAMA is config.model_provider
    if configured and config.ollama_api_base is None and config.openai_api_base is not None:
        # The variables of a self-hosted server apply to this kind of server too.
        return replace(needs, settings="OPENAI")
    return needs


def _configured_values(
    requirements: _ProviderRequirements,
    config: Config,
) -> tuple[str | None, SecretStr | None]:
    base, key = requirements.base_variable.lower(), requirements.key_variable.lower()
    return getattr(config, base), getattr(config, key) or getattr(
        config,
        requirements.other_key.lower(),
        None,
    )


def _strip_version(base_url: str, needs: _ProviderRequirements) -> str:
    ends = (end for end in needs.versions if base_url.endswith(end))
    return base_url.removesuffix(next(ends, ""))


def _missing_setting_error(variable: str, name: ProviderName, meaning: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"provider {name.value}: {meaning} is missing; set {variable}",
        code="PROVIDER_NOT_CONFIGURED",
    )


WIRES: dict[ProviderName, WireProtocol] = {
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
class AnswerSource:
    """The model and account that would answer a request.

    Attributes:
        provider: the provider's name.
        model: the requested model.
        account: a digest of server and key: answers to one account must not be served to another.
    """

    provider: str
    model: str
    account: str


class ProviderRegistry:
    """The providers of one process, each created on first use.

    Args:
        config: the settings; the configured provider is created at once, so that a missing setting is
            reported at start-up.

    Raises:
        FailedPreconditionError: the configured provider lacks a setting; the message names the variable.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._timeouts = StreamTimeouts(
            connect=config.provider_connect_seconds,
            first_event=config.provider_first_event_seconds,
            between_chunks=config.provider_pause_seconds,
            total=config.provider_total_seconds,
        )
        self._catalog = ModelCatalog.load(config.models)
        self._providers: dict[ProviderName, Provider] = {}
        self._default = self._get(config.model_provider)

    def select(self, request: GenerateRequest, model: str | None = None) -> tuple[Provider, ProviderCall]:
        """Return the provider for a request, and the call to make.

        Args:
            request: the request.
            model: `provider/model` or a model that replaces the request's own.

        Raises:
            FailedPreconditionError: the provider lacks a setting, or no model is named anywhere.
            InvalidArgumentError: the model has no known provider.
        """
        chosen, name = choose_provider(
            model or request.model,
            self._config.model_provider,
            self._is_configured,
        )
        if chosen is None:
            raise unknown_provider_error()
        provider = self._get(chosen)
        name = name or provider.model or ""
        if not name:
            raise FailedPreconditionError(
                f"provider {provider.name}: model is missing; set MODEL_NAME, or use"
                f" {provider.name}/<model> in the request",
                code="PROVIDER_NOT_CONFIGURED",
            )
        data = self._catalog.find(provider.name, name)
        if request.max_output_tokens is None and request.answer_tokens is not None:
            request = replace(request, max_output_tokens=data.tokens_for_answer(request.answer_tokens))
        return provider, ProviderCall(request, name, data)

    def answer_source(self, request: GenerateRequest) -> AnswerSource:
        """Return the model and account that would answer a request; raises the errors of `first`."""
        provider, call = self.first_configured(request)
        return AnswerSource(provider.name, call.model, provider.account)

    def first_configured(self, request: GenerateRequest) -> tuple[Provider, ProviderCall]:
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
        for provider in self._providers.values():
            await provider.aclose()

    def _is_configured(self, name: ProviderName) -> bool:
        return is_configured(name, self._config)

    def _get(self, name: ProviderName) -> Provider:
        if name not in self._providers:
            self._providers[name] = self._create(name)
        return self._providers[name]

    def _create(self, name: ProviderName) -> Provider:
        if name is ProviderName.OFFLINE:
            # Imported lazily: its language data is loaded only if it answers.
            from peripety.gateway.providers.offline.provider import OfflineProvider  # noqa: PLC0415

            return OfflineProvider()
        return HttpProvider(endpoint_of(name, self._config), WIRES[name], self._timeouts)
