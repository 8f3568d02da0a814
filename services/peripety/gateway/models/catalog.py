"""Model catalog: all known models by provider and name, read from model files (TOML).

A model in a file inherits missing keys from the model named in `like`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from peripety.core.validation import Page, PagePosition, decode_page_token, make_page, resolve_page_size
from peripety.errors import InvalidArgumentError
from peripety.gateway.models.model_data import ModelData
from peripety.gateway.provider_selection import (
    canonical_provider,
    catalog_provider_of,
    choose_provider,
    family_of,
    provider_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import date
    from pathlib import Path

    from peripety.core.config import Config


# Keys that identify a model and are therefore not inherited.
_NOT_INHERITED = frozenset({"provider", "name", "names", "like", "released", "retired"})
_MODEL_ADAPTER = TypeAdapter(ModelData)


class ModelFiles:
    """Model entries of one or more files; a later file overrides an earlier one.

    A later file may add models and change single keys: a model with the same provider and name inherits all
    keys that the later file leaves out.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], dict[str, Any]] = {}
        self._sources: dict[tuple[str, str], str] = {}

    def add(self, text: str, source: str) -> None:
        """Add the models of a file.

        Args:
            text: the TOML document.
            source: the file's name, for errors.

        Raises:
            InvalidArgumentError: the document is not a list of models.
        """
        try:
            document = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as error:
            raise _model_file_error(source, f"is not TOML: {error}") from None
        if unknown := document.keys() - {"model"}:
            raise _model_file_error(
                source,
                f"{min(unknown)}: unknown key; a model file has only [[model]] tables",
            )
        cards = document.get("model", [])
        if not isinstance(cards, list):
            raise _model_file_error(source, "model: must be an array of tables; write [[model]]")
        added: dict[tuple[str, str], dict[str, Any]] = {}
        for index, card in enumerate(cards):
            key = _entry_key(card, f"model[{index}]", source)
            if key in added:
                raise _model_file_error(source, f"{'/'.join(key)}: duplicate model; merge the two entries")
            added[key] = _merge_over(card, self._entries.get(key, {}))
        self._sources |= dict.fromkeys(added, source)
        self._entries = added | {key: card for key, card in self._entries.items() if key not in added}

    def models(self) -> list[ModelData]:
        """Return the models, in the order in which their name patterns are tried.

        Raises:
            InvalidArgumentError: an entry is wrong; the message names the file, the model and the key.
        """
        return [self._model(key) for key in self._entries]

    def _model(self, key: tuple[str, str]) -> ModelData:
        source, name = self._sources[key], "/".join(key)
        try:
            model = _MODEL_ADAPTER.validate_python(self._resolve_inheritance(key, ()))
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[0]
            place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in found["loc"])
            message = found["msg"].removeprefix("Value error, ")
            raise _model_file_error(source, f"{name}: {place.removeprefix('.')}: {message}") from None
        if problem := _find_contradiction(model):
            raise _model_file_error(source, f"{name}: {problem}")
        return model

    def _resolve_inheritance(
        self,
        key: tuple[str, str],
        visited: tuple[tuple[str, str], ...],
    ) -> dict[str, Any]:
        """Return an entry with all inherited keys."""
        card = self._entries[key]
        provider, name = key
        like = (provider, card.get("like", "*"))
        known = {field: value for field, value in card.items() if field != "like"}
        if name == "*" and "like" not in card:
            return known
        if like not in self._entries:
            way_out = (
                'add the provider\'s entry for any other name, "*"' if like[1] == "*" else "add its entry"
            )
            raise _model_file_error(
                self._sources[key],
                f"{'/'.join(key)}: like: unknown model {'/'.join(like)}; {way_out}",
            )
        if like in {*visited, key}:
            raise _model_file_error(
                self._sources[key],
                f"{'/'.join(key)}: like: circular reference; remove it",
            )
        base = self._resolve_inheritance(like, (*visited, key))
        return _merge_over(
            known,
            {field: value for field, value in base.items() if field not in _NOT_INHERITED},
        )


def _entry_key(entry: Any, place: str, source: str) -> tuple[str, str]:
    for field in ("provider", "name"):
        if not isinstance(entry, dict) or not isinstance(entry.get(field), str) or not entry[field]:
            raise _model_file_error(source, f"{place}.{field}: is required, as text")
    if not isinstance(entry.get("like", ""), str):
        raise _model_file_error(source, f"{place}.like: must be the name of a model of the same provider")
    return entry["provider"], entry["name"]


def _merge_over(entry: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry merged over its base; tables such as `cache` are merged key by key."""
    merged = {**base, **entry}
    for field in ("cache", "traits"):
        if isinstance(entry.get(field), dict) and isinstance(base.get(field), dict):
            merged[field] = {**base[field], **entry[field]}
    return merged


def _find_contradiction(model: ModelData) -> str | None:
    """Return a contradiction within a model's data, with its key; None if the data is consistent."""
    lists = Counter((price.effective, price.min_input_tokens, price.peak) for price in model.prices)
    for (effective, tokens, _), count in lists.items():
        day = effective or "no day"
        if count > 1:
            return f"prices: two prices from {day} on for {tokens} tokens; remove one"
        if lists[effective, 0, None] == 0:
            return f"prices: {day} lacks a price for small prompts at any hour"
    for index, price in enumerate(model.prices):
        if unknown := price.cache_write.keys() - model.cache.ttls.keys():
            return f"prices[{index}].cache_write: '{min(unknown)}' is not in cache.ttls"
    if model.max_output_tokens and model.default_output_tokens > model.max_output_tokens:
        return "default_output_tokens: exceeds max_output_tokens"
    return None


def _model_file_error(source: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"model file {source}: {problem}", code="BAD_CONFIGURATION")


_GENERIC_PROVIDER = "generic"


class ModelCatalog:
    """Model catalog.

    Args:
        models: in the order in which their patterns are tried; every provider has an entry for any other
            name.
    """

    def __init__(self, models: Iterable[ModelData]) -> None:
        self._models = tuple(models)
        self._by_name: dict[str, list[ModelData]] = {}
        for model in self._models:
            if not model.is_default_entry:
                self._by_name.setdefault(model.provider, []).append(model)
        self._defaults = {model.provider: model for model in self._models if model.is_default_entry}

    @classmethod
    @lru_cache
    def load(cls, extra_file: Path | None = None) -> ModelCatalog:
        """Load the catalog.

        Args:
            extra_file: a file that extends and overrides the built-in models.

        Raises:
            InvalidArgumentError: the file cannot be read or is wrong; the message names model and key.
        """
        cards = ModelFiles()
        cards.add(resources.files(__package__).joinpath("models.toml").read_text("utf-8"), "models.toml")
        if extra_file is not None:
            try:
                text = extra_file.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "not UTF-8"
                raise InvalidArgumentError(
                    f"PERIPETY_MODELS: cannot read {extra_file}: {reason}",
                    code="BAD_CONFIGURATION",
                ) from None
            cards.add(text, str(extra_file))
        return cls(cards.models())

    def find(self, provider: str, model: str | None) -> ModelData:
        """Return the data of a model. An unknown name gets the data common to all models of its provider.

        Args:
            provider: the provider; an unknown one is treated as a generic server.
            model: the model's name, or that of a snapshot; None for the provider's default.
        """
        provider, owner = canonical_provider(provider), catalog_provider_of(provider)
        name = (model or "").lower()
        spellings = {name, family_of(name)}
        named = self._by_name.get(owner, ())
        exact = (known for known in named if known.name.lower() == name)
        loose = (known for known in named if _matches_name(known, spellings))
        found = next(exact, None) or next(loose, None) or self._defaults.get(owner)
        return replace(found or self._defaults[_GENERIC_PROVIDER], provider=provider)

    def find_requested(self, model: str | None, config: Config) -> ModelData | None:
        """Return the data of the model that answers a request; None if its provider is unknown.

        Args:
            model: as in `GenerateRequest.model`.
            config: the model and the provider of requests without a model.
        """
        provider, name = choose_provider(model or config.model_name, config.model_provider)
        return None if provider is None else self.find(provider.value, name)

    def provider_of(self, model: str) -> str | None:
        """Return the provider whose model names share this one's prefix, or None."""
        return provider_of(model)

    def models(self, provider: str | None = None) -> tuple[ModelData, ...]:
        """Return the named models, sorted by provider and name, optionally of one provider."""
        named = [model for model in self._models if not model.is_default_entry]
        if provider is not None:
            owner, asked = catalog_provider_of(provider), canonical_provider(provider)
            named = [replace(model, provider=asked) for model in named if model.provider == owner]
        return tuple(sorted(named, key=lambda each: f"{each.provider}/{each.name}"))


def _matches_name(model: ModelData, spellings: set[str]) -> bool:
    return model.name.lower() in spellings or any(
        fnmatchcase(each, glob.lower()) for glob in model.names for each in spellings
    )


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that can be requested.

    Attributes:
        name: `provider/model`.
        data: its catalog data.
        is_default: whether it answers requests without a model.
    """

    name: str
    data: ModelData
    is_default: bool


class ModelList:
    """All named models that are not retired, and the default model.

    Args:
        catalog: the model catalog.
        default: provider and model of requests without a model; None if not configured.
        today: returns the day, in UTC.
    """

    def __init__(
        self,
        catalog: ModelCatalog,
        default: tuple[str, str] | None,
        today: Callable[[], date],
    ) -> None:
        self._catalog = catalog
        self._default = default
        self._today = today

    def page(self, provider: str, asked_size: int, token: str) -> Page[ListedModel]:
        """Return a page of models, sorted by name.

        Args:
            provider: only its models; empty for all.
            asked_size: page size; 0 uses the server's default.
            token: token of the page; empty for the first one.

        Raises:
            InvalidArgumentError: the page size or token is invalid.
        """
        size, before = resolve_page_size(asked_size), decode_page_token(token)
        models = self._models(canonical_provider(provider))
        begin = 0 if before is None else before.number + 1
        places = {model.name: place for place, model in enumerate(models)}
        return make_page(
            models[begin : begin + size + 1],
            size,
            lambda model: PagePosition(places[model.name]),
        )

    def _models(self, provider: str) -> list[ListedModel]:
        today = self._today()
        found = {
            f"{model.provider}/{model.name}": model
            for model in self._catalog.models(provider or None)
            if model.retired is None or model.retired > today
        }
        default = None
        if self._default is not None and provider in {"", self._default[0]}:
            default = "/".join(self._default)
            found.setdefault(default, self._catalog.find(*self._default))
        return [ListedModel(name, found[name], is_default=name == default) for name in sorted(found)]
