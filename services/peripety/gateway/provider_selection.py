"""Provider selection: by the request, by the model's name, or by the configuration.

A model family is the name of a model without its snapshot.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.core.config import ProviderName
from peripety.errors import field_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.errors import InvalidArgumentError


_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$", re.IGNORECASE)
_NAME_PATTERNS = (
    (re.compile(r"claude", re.IGNORECASE), "anthropic"),
    (re.compile(r"gemini", re.IGNORECASE), "gemini"),
    (re.compile(r"deepseek", re.IGNORECASE), "deepseek"),
    (re.compile(r"(chat)?gpt|o\d", re.IGNORECASE), "openai"),
)
_PROVIDER_ALIASES = {"google": "gemini"}
_CATALOG_PROVIDERS = {"openai-responses": "openai"}


def provider_of(model: str) -> str | None:
    """Return the provider whose model names share this one's prefix, or None."""
    return next((provider for beginning, provider in _NAME_PATTERNS if beginning.match(model)), None)


def canonical_provider(name: str) -> str:
    """Return the canonical name of a provider: `google` is `gemini`."""
    return _PROVIDER_ALIASES.get(name.lower(), name.lower())


def catalog_provider_of(provider: str) -> str:
    """Return the provider under whose name the catalog lists the models that a provider serves."""
    name = canonical_provider(provider)
    return _CATALOG_PROVIDERS.get(name, name)


def family_of(model: str) -> str:
    """Return the model family, without the snapshot: `m` for `m-2026-01-31`, `m-20260131` and `m-latest`."""
    return _SNAPSHOT.sub("", model)


_PROVIDER_NAMES = {name.value: name for name in ProviderName}
_ANY_MODEL_PROVIDERS = frozenset(
    {
        ProviderName.GENERIC,
        ProviderName.OLLAMA,
        ProviderName.AZURE,
        ProviderName.OPENAI_RESPONSES,
        ProviderName.SCRIPTED,
    },
)
"""Providers that serve models of any name; a provider is otherwise derived from the model's name."""


def choose_provider(
    model: str | None,
    configured: ProviderName,
    is_configured: Callable[[ProviderName], bool] = lambda _: False,
) -> tuple[ProviderName | None, str]:
    """Return the provider, and the bare name of the model; empty for the provider's default.

    Return None as the provider if the model's name implies no provider and the configured one has no such
    models. A model's name may contain slashes: only a provider's name before the first slash counts.

    Args:
        model: `provider/model`, or a model; None or empty for the configured one.
        configured: the default provider.
        is_configured: returns whether the provider implied by a model has its settings. If it has not, a
            configured provider that may serve a model of that name is used.
    """
    model = model or ""
    prefix, _, rest = model.partition("/")
    named = _PROVIDER_NAMES.get(canonical_provider(prefix))
    if named is not None:
        return named, rest
    given_away = _PROVIDER_NAMES.get(provider_of(model) or "")
    if given_away is None and model and configured is ProviderName.OFFLINE:
        return None, model
    if given_away is None or (configured in _ANY_MODEL_PROVIDERS and not is_configured(given_away)):
        return configured, model
    return given_away, model


def unknown_provider_error() -> InvalidArgumentError:
    """Return the error of a model without a known provider."""
    known = ", ".join(_PROVIDER_NAMES)
    return field_error(
        ".model",
        f"has an unknown provider; write provider/model with one of {known}, or leave it empty",
    )
