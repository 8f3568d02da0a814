"""From a handful of words to a whole specification: for models that cannot write one.

The model says what plays which part, under a schema that fits into any context. The rules are of the design
that the offline provider uses, whose odds do not depend on words.
"""

from __future__ import annotations

import hashlib
import re
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.authoring.plot import TEMPOS
from peripety.authoring.reading.scripts import cleaned, clipped
from peripety.authoring.reading.words import read
from peripety.authoring.texts import Casting, compose, identifiers
from peripety.gateway.model import ResponseSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["OUTLINE", "excerpt", "spec_from_outline"]

_PARTS = ("resource", "asset", "danger", "goal", "accident", "luck")
_TITLE, _PERSON = "title", "person"
_WORD_LIMIT = 32
_TITLE_LIMIT = 64
_EXCERPT = 2_000
# What paths, templates and identifiers give a meaning to.
_UNFIT = re.compile(r"[\"\\{}\[\]<>$%_\s]+")
_EDGES = " .,:;!?-"


def _schema() -> dict[str, Any]:
    words = {part: {"type": "string", "minLength": 1, "maxLength": _WORD_LIMIT} for part in _PARTS}
    title = {"type": "string", "minLength": 1, "maxLength": _TITLE_LIMIT}
    person = {"type": "string", "maxLength": _WORD_LIMIT}
    return {
        "type": "object",
        "properties": {_TITLE: title, **words, _PERSON: person},
        "required": [_TITLE, *_PARTS, _PERSON],
        "additionalProperties": False,
    }


OUTLINE = ResponseSchema("scenario_outline", _schema())
"""The schema of an outline: flat, and no longer than it has to be."""


def excerpt(description: str) -> str:
    """As much of a description as a small context takes."""
    return clipped(cleaned(description[:_EXCERPT]), _EXCERPT)


def spec_from_outline(outline: Any, description: str, seed: int) -> dict[str, Any]:
    """A specification in the words of an outline; words that cannot be used come from the description.

    Args:
        outline: fits `OUTLINE`.
        description: what it is about; the connecting text is in its language.
        seed: seed of the scenario, and of what the outline leaves open.
    """
    title = _fit(outline[_TITLE], _TITLE_LIMIT)
    spare = read(description if description.strip() else title, at_least=len(_PARTS), at_most=len(_PARTS))
    terms = _different([_fit(outline[part], _WORD_LIMIT) for part in _PARTS], spare.terms)
    person = _fit(outline[_PERSON], _WORD_LIMIT)
    if person.casefold() not in description.casefold():
        person = next(iter(spare.people), "")
    casting = _casting(terms, person, spare.language.rules, seed)
    name = title or spare.title or terms[0]
    marks = sim.canonical([name, seed, dict(casting.ids)])
    spec_id = f"outline_{hashlib.sha256(marks).hexdigest()[:12]}"
    return compose(casting, spec_id=spec_id, name=name, seed=seed)


def _fit(text: str, limit: int) -> str:
    """A word as a name can hold it; empty when it is none."""
    words = _UNFIT.sub(" ", cleaned(text)).split()
    if len(text) >= limit and len(words) > 1:
        # The limit may have cut the last one.
        words.pop()
    word = clipped(" ".join(words), limit).strip(_EDGES)
    is_word = any(char.isalpha() for char in word) and (len(word) > 1 or not word.isascii())
    return word[0].upper() + word[1:] if is_word and "://" not in word else ""


def _different(words: Sequence[str], spare: Iterable[str]) -> tuple[str, ...]:
    """Each word that is no other's, and a spare one in place of the rest."""
    kept: dict[str, str] = {}
    others = chain(spare, (str(number) for number in count(1)))
    for word in words:
        candidates = chain([word] if word else [], others)
        fresh = next(candidate for candidate in candidates if candidate.casefold() not in kept)
        kept[fresh.casefold()] = fresh
    return tuple(kept.values())


def _casting(terms: tuple[str, ...], person: str, phrases: Mapping[str, str], seed: int) -> Casting:
    *roles, setback, relief = terms
    return Casting(
        roles=roles,
        surprise=setback,
        comfort=relief,
        people=[person] if person else [],
        ids=identifiers(q=[*terms, person]),
        phrases=phrases,
        has_deadline=sim.draw(seed, "outline", 0, 0) % 2 == 0,
        tempo=TEMPOS[sim.draw(seed, "outline", 0, 1) % len(TEMPOS)],
    )
