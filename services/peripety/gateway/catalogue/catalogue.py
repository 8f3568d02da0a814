"""Model catalog: all known models, by provider and name."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from peripety.errors import InvalidArgumentError
from peripety.gateway.catalogue.cards import Cards
from peripety.gateway.catalogue.names import class_of, provider_named, provider_of, whose_models

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from peripety.gateway.catalogue.model import ModelData

__all__ = ["Catalogue"]

_UNKNOWN_SERVER = "generic"


class Catalogue:
    """Model catalog.

    Args:
        models: in the order in which their patterns are tried; every provider has an entry for any other
            name.
    """

    def __init__(self, models: Iterable[ModelData]) -> None:
        self._models = tuple(models)
        self._named: dict[str, list[ModelData]] = {}
        for model in self._models:
            if not model.is_any_other:
                self._named.setdefault(model.provider, []).append(model)
        self._any_other = {model.provider: model for model in self._models if model.is_any_other}

    @classmethod
    @lru_cache
    def load(cls, more: Path | None = None) -> Catalogue:
        """Load the catalog.

        Args:
            more: a file that extends and overrides the built-in models.

        Raises:
            InvalidArgumentError: the file cannot be read or is wrong; the message names model and key.
        """
        cards = Cards()
        cards.add(resources.files(__package__).joinpath("models.toml").read_text("utf-8"), "models.toml")
        if more is not None:
            try:
                text = more.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "not UTF-8"
                raise InvalidArgumentError(
                    f"PERIPETY_MODELS: cannot read {more}: {reason}", code="BAD_CONFIGURATION"
                ) from None
            cards.add(text, str(more))
        return cls(cards.models())

    def find(self, provider: str, model: str | None) -> ModelData:
        """Return the data of a model. An unknown name gets the data common to all models of its provider.

        Args:
            provider: the provider; an unknown one is treated as a generic server.
            model: the model's name, or that of a snapshot; None for the provider's default.
        """
        provider, owner = provider_named(provider), whose_models(provider)
        name = (model or "").lower()
        spellings = {name, class_of(name)}
        named = self._named.get(owner, ())
        exact = (known for known in named if known.name.lower() == name)
        loose = (known for known in named if _goes_by(known, spellings))
        found = next(exact, None) or next(loose, None) or self._any_other.get(owner)
        return replace(found or self._any_other[_UNKNOWN_SERVER], provider=provider)

    def provider_of(self, model: str) -> str | None:
        """Return the provider whose model names share this one's prefix, or None."""
        return provider_of(model)

    def models(self, provider: str | None = None) -> tuple[ModelData, ...]:
        """Return the named models, sorted by provider and name, optionally of one provider."""
        named = [model for model in self._models if not model.is_any_other]
        if provider is not None:
            owner, asked = whose_models(provider), provider_named(provider)
            named = [replace(model, provider=asked) for model in named if model.provider == owner]
        return tuple(sorted(named, key=lambda each: f"{each.provider}/{each.name}"))


def _goes_by(model: ModelData, spellings: set[str]) -> bool:
    return model.name.lower() in spellings or any(
        fnmatchcase(each, glob.lower()) for glob in model.names for each in spellings
    )
