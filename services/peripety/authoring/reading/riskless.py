"""Detection of texts that request a world without risk."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from peripety.authoring.reading import scripts

__all__ = ["riskless_phrase"]

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def riskless_phrase(text: str) -> str:
    """Return the first phrase that excludes every risk, in lower case; empty without one.

    Phrases of the languages in `riskless.toml` are recognized. Other wordings and languages are not.
    """
    said = " ".join(scripts.cleaned(text).casefold().translate(_APOSTROPHES).split())
    found = [match for pattern in _patterns() if (match := pattern.search(said))]
    return min(found, key=re.Match.start).group().strip() if found else ""


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    document = resources.files(__package__).joinpath("riskless.toml").read_text(encoding="utf-8")
    return tuple(re.compile(pattern) for each in tomllib.loads(document).values() for pattern in each)
