"""Provider selection: by the request, by the model's name, or by the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.config import ProviderName
from peripety.gateway.catalogue.names import provider_named, provider_of
from peripety.requests import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.errors import InvalidArgumentError

__all__ = ["choose_provider", "unknown_provider"]

_NAMES = {name.value: name for name in ProviderName}
_ANY_MODEL = frozenset(
    {
        ProviderName.GENERIC,
        ProviderName.OLLAMA,
        ProviderName.AZURE,
        ProviderName.OPENAI_RESPONSES,
        ProviderName.SCRIPTED,
    }
)
"""Providers that serve models of any name; a provider is otherwise derived from the model's name."""


def choose_provider(
    model: str | None,
    configured: ProviderName,
    is_set_up: Callable[[ProviderName], bool] = lambda _: False,
) -> tuple[ProviderName | None, str]:
    """Return the provider, and the bare name of the model; empty for the provider's default.

    Return None as the provider if the model's name implies no provider and the configured one has no such
    models. A model's name may contain slashes: only a provider's name before the first slash counts.

    Args:
        model: `provider/model`, or a model; None or empty for the configured one.
        configured: the default provider.
        is_set_up: returns whether the provider implied by a model has its settings. If it has not, a
            configured provider that may serve a model of that name is used.
    """
    model = model or ""
    prefix, _, rest = model.partition("/")
    named = _NAMES.get(provider_named(prefix))
    if named is not None:
        return named, rest
    given_away = _NAMES.get(provider_of(model) or "")
    if given_away is None and model and configured is ProviderName.OFFLINE:
        return None, model
    if given_away is None or (configured in _ANY_MODEL and not is_set_up(given_away)):
        return configured, model
    return given_away, model


def unknown_provider() -> InvalidArgumentError:
    """Return the error of a model without a known provider."""
    known = ", ".join(_NAMES)
    return refuse(
        ".model",
        f"has an unknown provider; write provider/model with one of {known}, or leave it empty",
    )
