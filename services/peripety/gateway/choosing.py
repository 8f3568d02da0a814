"""Which provider answers: named by a request, given away by its model, or chosen by the configuration."""

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
"""Providers whose models may be called anything, also what gives another one away."""


def choose_provider(
    model: str | None,
    configured: ProviderName,
    is_set_up: Callable[[ProviderName], bool] = lambda _: False,
) -> tuple[ProviderName | None, str]:
    """The provider that answers, and the bare name of the model; empty for the provider's own.

    Nobody answers where a model is named that gives no provider away, and the configured one has no models.
    A model's name may contain slashes of its own: only a provider's name before the first one counts.

    Args:
        model: `provider/model`, or a model; None or empty for the configured one.
        configured: the provider of whoever names none.
        is_set_up: whether a provider whose model is named has its settings; a configured one that may have a
            model of that name is asked where it has not.
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
    """The error for a model that nobody here answers for."""
    known = ", ".join(_NAMES)
    return refuse(
        ".model",
        f"names no provider that is known here: write provider/model with one of {known}, or leave it empty",
    )
