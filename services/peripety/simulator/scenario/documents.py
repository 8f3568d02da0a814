"""TOML and JSON parsing, with the position and the reason of an error."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from peripety.simulator.scenario.places import Places
from peripety.simulator.scenario.problems import Place

__all__ = ["DocumentError", "parse_json", "parse_toml"]

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TOP = Place(1, 1)  # used if the parser reports no position


class DocumentError(Exception):
    """A parse error with its position and its reason."""

    def __init__(self, place: Place, sentence: str) -> None:
        super().__init__(sentence)
        self.place = place
        self.sentence = sentence


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text to a table.

    Raises:
        DocumentError: the text is not valid.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DocumentError(_TOP, "not valid TOML: nested too deeply") from None
    except ValueError as error:
        reason = str(error)
        place = _TOP
        if found := _TOML_PLACE.search(reason):
            place = Place(int(found[1]), int(found[2])) if found[1] else _end(text)
        raise DocumentError(place, f"not valid TOML: {_TOML_PLACE.sub('', reason)}") from None


def parse_json(text: str) -> Any:
    """Parse JSON text. Duplicate keys are errors.

    Raises:
        DocumentError: the text is not valid.
    """
    repeats = False

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        values = dict(pairs)
        repeats |= len(values) < len(pairs)
        return values

    try:
        value = json.loads(text, object_pairs_hook=table)
    except RecursionError:
        raise DocumentError(_TOP, "not valid JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DocumentError(Place(error.lineno, error.colno), f"not valid JSON: {error.msg}") from None
    except ValueError as error:
        raise DocumentError(_TOP, f"not valid JSON: {error}") from None
    if repeats:
        places = Places(text, format="json")
        path = places.repeated[0]
        raise DocumentError(places.find(path), f"not valid JSON: the key {path[-1]!r} is repeated")
    return value


def _end(text: str) -> Place:
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"))
