"""Whether a text asks for a world in which nothing can be lost."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from peripety.authoring.reading import scripts

__all__ = ["riskless_phrase"]

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def riskless_phrase(text: str) -> str:
    """The first words of a text that say that nothing is to be at stake, in lower case; empty without any.

    Words are understood in the languages of `riskless.toml`. Other ways of saying so, and other languages,
    are not noticed.
    """
    said = " ".join(scripts.cleaned(text).casefold().translate(_APOSTROPHES).split())
    found = [match for pattern in _patterns() if (match := pattern.search(said))]
    return min(found, key=re.Match.start).group().strip() if found else ""


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    document = resources.files(__package__).joinpath("riskless.toml").read_text(encoding="utf-8")
    return tuple(re.compile(pattern) for each in tomllib.loads(document).values() for pattern in each)
