"""Provider settings: endpoints and requirements, from the configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.config import ProviderName
from peripety.errors import FailedPreconditionError
from peripety.gateway.providers.endpoint import Endpoint

if TYPE_CHECKING:
    from pydantic import SecretStr

    from peripety.config import Config

__all__ = ["endpoint_of", "is_set_up"]


@dataclass(frozen=True, slots=True)
class _Needs:
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


_OPENAI = _Needs("OPENAI", "https://api.openai.com/v1", key=True)
_NEEDS = {
    ProviderName.OPENAI: _OPENAI,
    ProviderName.OPENAI_RESPONSES: _OPENAI,
    ProviderName.ANTHROPIC: _Needs("ANTHROPIC", "https://api.anthropic.com", key=True, versions=("/v1",)),
    ProviderName.GEMINI: _Needs(
        "GEMINI",
        "https://generativelanguage.googleapis.com",
        key=True,
        other_key="GOOGLE_API_KEY",
        versions=("/v1beta", "/v1"),
    ),
    ProviderName.DEEPSEEK: _Needs("DEEPSEEK", "https://api.deepseek.com", key=True),
    ProviderName.OLLAMA: _Needs("OLLAMA", "http://127.0.0.1:11434", key=False, versions=("/v1", "/api")),
    ProviderName.AZURE: _Needs("AZURE", None, key=True, versions=("/openai/v1", "/openai")),
    ProviderName.GENERIC: _Needs("OPENAI", None, key=False),
    ProviderName.SCRIPTED: _Needs("SCRIPTED", None, key=False, model="scripted"),
}


def endpoint_of(name: ProviderName, config: Config) -> Endpoint:
    """Return the endpoint of an HTTP provider.

    Raises:
        FailedPreconditionError: a setting is missing; the message names its variable.
    """
    needs = _needs(name, config)
    base_url, key = _given(needs, config)
    base_url = base_url or needs.base_url
    if base_url is None:
        raise _unset(needs.base_variable, name, "server URL")
    if needs.key and key is None:
        raise _unset(needs.key_variable, name, "API key")
    # The configured model belongs to the configured provider.
    model = config.model_name if name is config.model_provider else None
    base_url = _without_version(base_url.rstrip("/"), needs)
    return Endpoint(name.value, base_url, key, model or needs.model, needs.base_variable, needs.key_variable)


def is_set_up(name: ProviderName, config: Config) -> bool:
    """Return True if all required settings of the provider are present."""
    if name not in _NEEDS:
        return True
    needs = _needs(name, config)
    base_url, key = _given(needs, config)
    return (key is not None or not needs.key) and (base_url or needs.base_url) is not None


def _needs(name: ProviderName, config: Config) -> _Needs:
    needs = _NEEDS[name]
    configured = name is ProviderName.OLLAMA is config.model_provider
    if configured and config.ollama_api_base is None and config.openai_api_base is not None:
        # The variables of a self-hosted server apply to this kind of server too.
        return replace(needs, settings="OPENAI")
    return needs


def _given(needs: _Needs, config: Config) -> tuple[str | None, SecretStr | None]:
    base, key = needs.base_variable.lower(), needs.key_variable.lower()
    return getattr(config, base), getattr(config, key) or getattr(config, needs.other_key.lower(), None)


def _without_version(base_url: str, needs: _Needs) -> str:
    ends = (end for end in needs.versions if base_url.endswith(end))
    return base_url.removesuffix(next(ends, ""))


def _unset(variable: str, name: ProviderName, meaning: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"provider {name.value}: {meaning} is missing; set {variable}", code="PROVIDER_NOT_CONFIGURED"
    )
