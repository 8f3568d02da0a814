"""Reader of model files (TOML). A model inherits missing keys from the model named in `like`."""

from __future__ import annotations

import tomllib
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from peripety.errors import InvalidArgumentError
from peripety.gateway.catalogue.model import ModelData

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Cards"]

# Keys that identify a model and are therefore not inherited.
_ITS_OWN = frozenset({"provider", "name", "names", "like", "released", "retired"})
_MODEL = TypeAdapter(ModelData)


class Cards:
    """Model entries of one or more files; a later file overrides an earlier one.

    A later file may add models and change single keys: a model with the same provider and name inherits all
    keys that the later file leaves out.
    """

    def __init__(self) -> None:
        self._cards: dict[tuple[str, str], dict[str, Any]] = {}
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
            raise _bad(source, f"is not TOML: {error}") from None
        if unknown := document.keys() - {"model"}:
            raise _bad(source, f"{min(unknown)}: unknown key; a model file has only [[model]] tables")
        cards = document.get("model", [])
        if not isinstance(cards, list):
            raise _bad(source, "model: must be an array of tables; write [[model]]")
        added: dict[tuple[str, str], dict[str, Any]] = {}
        for index, card in enumerate(cards):
            key = _key(card, f"model[{index}]", source)
            if key in added:
                raise _bad(source, f"{'/'.join(key)}: duplicate model; merge the two entries")
            added[key] = _over(card, self._cards.get(key, {}))
        self._sources |= dict.fromkeys(added, source)
        self._cards = added | {key: card for key, card in self._cards.items() if key not in added}

    def models(self) -> list[ModelData]:
        """Return the models, in the order in which their name patterns are tried.

        Raises:
            InvalidArgumentError: an entry is wrong; the message names the file, the model and the key.
        """
        return [self._model(key) for key in self._cards]

    def _model(self, key: tuple[str, str]) -> ModelData:
        source, name = self._sources[key], "/".join(key)
        try:
            model = _MODEL.validate_python(self._complete(key, ()))
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[0]
            place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in found["loc"])
            message = found["msg"].removeprefix("Value error, ")
            raise _bad(source, f"{name}: {place.removeprefix('.')}: {message}") from None
        if problem := _contradiction(model):
            raise _bad(source, f"{name}: {problem}")
        return model

    def _complete(self, key: tuple[str, str], asking: tuple[tuple[str, str], ...]) -> dict[str, Any]:
        """Return an entry with all inherited keys."""
        card = self._cards[key]
        provider, name = key
        like = (provider, card.get("like", "*"))
        known = {field: value for field, value in card.items() if field != "like"}
        if name == "*" and "like" not in card:
            return known
        if like not in self._cards:
            way_out = (
                'add the provider\'s entry for any other name, "*"' if like[1] == "*" else "add its entry"
            )
            raise _bad(
                self._sources[key], f"{'/'.join(key)}: like: unknown model {'/'.join(like)}; {way_out}"
            )
        if like in {*asking, key}:
            raise _bad(self._sources[key], f"{'/'.join(key)}: like: circular reference; remove it")
        base = self._complete(like, (*asking, key))
        return _over(known, {field: value for field, value in base.items() if field not in _ITS_OWN})


def _key(card: Any, place: str, source: str) -> tuple[str, str]:
    for field in ("provider", "name"):
        if not isinstance(card, dict) or not isinstance(card.get(field), str) or not card[field]:
            raise _bad(source, f"{place}.{field}: is required, as text")
    if not isinstance(card.get("like", ""), str):
        raise _bad(source, f"{place}.like: must be the name of a model of the same provider")
    return card["provider"], card["name"]


def _over(card: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry merged over its base; tables such as `cache` are merged key by key."""
    merged = {**base, **card}
    for field in ("cache", "traits"):
        if isinstance(card.get(field), dict) and isinstance(base.get(field), dict):
            merged[field] = {**base[field], **card[field]}
    return merged


def _contradiction(model: ModelData) -> str | None:
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


def _bad(source: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"model file {source}: {problem}", code="BAD_CONFIGURATION")
