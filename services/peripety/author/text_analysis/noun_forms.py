"""Gender and plural of Spanish and German nouns.

The tables are lexemes of Wikidata (CC0); `docs/build_nouns.py` builds them. A German compound has the gender
and the plural of the longest known noun at its end, and an unknown noun those of a compound with it.
"""

from __future__ import annotations

import lzma
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORTEST = 3
_FEMININE = (
    ("es", ("a", "ción", "sión", "dad", "tad", "tud", "umbre", "ez", "sis")),
    ("de", ("ung", "heit", "keit", "schaft", "ion", "tät", "ik", "ei", "enz", "anz", "in", "e")),
)
_NEUTER = ("chen", "lein", "ment", "um", "nis")
_VOWELS = "aeiouáéó"


@cache
def _load_nouns(code: str) -> Mapping[str, tuple[str, str]]:
    packed = resources.files(__package__).joinpath(f"nouns_{code}.txt.xz").read_bytes()
    rows = (line.split("\t") for line in lzma.decompress(packed).decode().split("\n"))
    return {noun: (gender, plural) for noun, gender, plural in rows}


@cache
def _load_plurals(code: str) -> Mapping[str, str]:
    """Return the singular of each plural that differs from it."""
    return {plural: noun for noun, (_, plural) in _load_nouns(code).items() if plural and plural != noun}


def _find(noun: str, table: Mapping[str, object], code: str) -> str:
    """Return the noun, or its longest end, that is in a table; empty without one."""
    if code != "de":
        return noun.lower() if noun.lower() in table else ""
    ends = (noun[start:].capitalize() for start in range(len(noun) - _SHORTEST + 1))
    return next((end for end in ends if end in table), "")


@cache
def _find_compound(noun: str, code: str) -> str:
    """Return the shortest German noun of a table that ends with a noun that is in none; empty without one."""
    if code != "de":
        return ""
    longer = (one for one in _load_nouns(code) if len(one) > len(noun) and one.endswith(noun.lower()))
    return min(longer, key=lambda one: (len(one), one), default="")


def find_gender(noun: str, code: str, shown: str = "") -> str:
    """Return the gender of a singular noun: "m", "f" or "n".

    Args:
        noun: the noun.
        code: the code of the language.
        shown: the gender that the text shows, for a noun that is in no table; empty if it shows none.
    """
    nouns = _load_nouns(code)
    if known := _find(noun, nouns, code):
        return nouns[known][0]
    if shown:
        return shown
    if found := _find_compound(noun, code):
        return nouns[found][0]
    if noun.lower().endswith(dict(_FEMININE)[code]):
        return "f"
    return "n" if code == "de" and noun.lower().endswith(_NEUTER) else "m"


def find_plural(noun: str, code: str) -> str:
    """Return the plural of a singular noun."""
    nouns = _load_nouns(code)
    known = _find(noun, nouns, code) or _find_compound(noun, code)
    if known and (plural := nouns[known][1]):
        if len(known) > len(noun):
            return plural[len(known) - len(noun) :].capitalize()
        start = noun[: len(noun) - len(known)]
        return start + plural.lower() if start else plural
    if code == "de":
        return f"{noun}n" if noun.endswith("e") else noun
    if noun.endswith("z"):
        return f"{noun[:-1]}ces"
    if noun.endswith("ión"):
        return f"{noun[:-2]}ones"
    return f"{noun}s" if noun[-1:] in _VOWELS else f"{noun}es"


def find_singular(noun: str, code: str) -> str:
    """Return the singular of a plural noun; the noun itself if it is not known."""
    plurals = _load_plurals(code)
    return plurals.get(noun) or plurals.get(noun.lower()) or noun.removesuffix("s")


def is_plural(noun: str, code: str) -> bool:
    """Return True if a noun is the plural of a known one, and is not itself a singular."""
    is_singular = noun.lower() in _load_nouns(code) or noun in _load_nouns(code)
    if code == "de":
        plural, single = _find(noun, _load_plurals(code), code), _find(noun, _load_nouns(code), code)
        return len(plural) > len(single) and not is_singular
    return not is_singular and (noun.lower() in _load_plurals(code) or noun.lower().endswith("s"))
