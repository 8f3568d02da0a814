"""Stemming for word comparison: "written" equals "writes"."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

__all__ = ["CONNECTING", "PLACES", "stem", "stems"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_ENDINGS = ("ings", "ing", "ions", "ion", "ies", "ied", "es", "ed", "en", "s", "e", "y")
_IRREGULAR = {"sent": "send", "wrote": "write", "ran": "run", "made": "make", "got": "get", "put": "put"}
_SHORTEST = 3


@cache
def stem(word: str) -> str:
    """Return the approximate stem of a word."""
    word = _IRREGULAR.get(word.casefold(), word.casefold())
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word.removesuffix(ending)
            break
    if len(word) > _SHORTEST and word[-1] in {"y", word[-2]}:
        return word[:-1]
    return word


def stems(text: str) -> frozenset[str]:
    """Return the stems of all words of a text; the parts of `snake_case` and `camelCase` are words too."""
    return frozenset(map(stem, _WORD.findall(text)))


CONNECTING: Final = stems(
    "a an the it he she we you i our your any all every each both everything anything nothing nobody"
    " of in into on onto at to from by for with within inside below under beneath above over through via"
    " using used use between and or nor so also only just even still always ever is are was were be been"
    " being do does done has have had will would must may might can could shall should not no never"
    " allowed allow allows permit permitted permits fine free freely assistant agent model caller callers"
    " tool tools call calls called request requests person human"
    " return returns give gives"
)
"""Stop words: words that do not affect a decision."""

PLACES: Final = stems(
    "path paths folder folders directory directories file files host hosts domain domains site sites"
    " address addresses recipient recipients list lists argument arguments value values name names"
)
"""Words beside a literal that also identify tools."""
