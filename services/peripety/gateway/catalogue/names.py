"""Model names: provider, aliases and model family (name without snapshot)."""

from __future__ import annotations

import re

__all__ = ["class_of", "provider_named", "provider_of", "whose_models"]

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$", re.IGNORECASE)
_PROVIDERS = (
    (re.compile(r"claude", re.IGNORECASE), "anthropic"),
    (re.compile(r"gemini", re.IGNORECASE), "gemini"),
    (re.compile(r"deepseek", re.IGNORECASE), "deepseek"),
    (re.compile(r"(chat)?gpt|o\d", re.IGNORECASE), "openai"),
)
_OTHER_NAMES = {"google": "gemini"}
_SERVES_MODELS_OF = {"openai-responses": "openai"}


def provider_of(model: str) -> str | None:
    """Return the provider whose model names share this one's prefix, or None."""
    return next((provider for beginning, provider in _PROVIDERS if beginning.match(model)), None)


def provider_named(name: str) -> str:
    """Return the canonical name of a provider: `google` is `gemini`."""
    return _OTHER_NAMES.get(name.lower(), name.lower())


def whose_models(provider: str) -> str:
    """Return the provider under whose name the catalog lists the models that a provider serves."""
    name = provider_named(provider)
    return _SERVES_MODELS_OF.get(name, name)


def class_of(model: str) -> str:
    """Return the model family, without the snapshot: `m` for `m-2026-01-31`, `m-20260131` and `m-latest`."""
    return _SNAPSHOT.sub("", model)
