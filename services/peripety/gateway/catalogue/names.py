"""Names of models: whose they are, and which snapshot of a model they mean."""

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
    """Return the provider whose models have names that begin like this one; None when no provider's do."""
    return next((provider for beginning, provider in _PROVIDERS if beginning.match(model)), None)


def provider_named(name: str) -> str:
    """Return what a provider is called here: `google` and `gemini` are one."""
    return _OTHER_NAMES.get(name.lower(), name.lower())


def whose_models(provider: str) -> str:
    """Return the provider under whose name the models are known that a provider serves."""
    name = provider_named(provider)
    return _SERVES_MODELS_OF.get(name, name)


def class_of(model: str) -> str:
    """Return a name without the snapshot: `m` for `m-2026-01-31`, `m-20260131` and `m-latest`."""
    return _SNAPSHOT.sub("", model)
