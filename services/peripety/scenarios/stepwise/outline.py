"""The first answer of a small model: what there is, what can be done and what may happen, by name."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

from peripety.authoring.blueprint import Action, Event, Quantity, Role
from peripety.authoring.composing.cast import FEWEST
from peripety.authoring.reading.names import NAME_LIMIT
from peripety.authoring.reading.scripts import cleaned, clipped
from peripety.authoring.reading.terms import Matter, Term, matter
from peripety.scenarios.prompts import prompt
from peripety.scenarios.stepwise.names import NAME, Names, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.authoring.blueprint import Blueprint

__all__ = ["OUTLINE", "PROMPT", "matter_of", "outlined", "question_about"]

PROMPT = "stepwise"
"""The name of the system prompt."""

_WORD = re.compile(r"\w+")
_EXCERPT = 2_000
_MOST_WORDS = 12

_ROLES = {"resources": Role.SUPPLY, "assets": Role.WARD, "dangers": Role.THREAT, "goals": Role.GOAL}
"""The lists of what there is, by the part that it plays."""
_MOST_OF_A_ROLE = 2
_MOST_SECRETS = 2
_MOST_PEOPLE = 4
_FEWEST_RULES, _MOST_RULES = 4, 8


def _names(at_least: int, at_most: int) -> dict[str, Any]:
    return {"type": "array", "items": NAME, "minItems": at_least, "maxItems": at_most}


def _schema() -> dict[str, Any]:
    properties = {
        "title": {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT},
        **{key: _names(1, _MOST_OF_A_ROLE) for key in _ROLES},
        "secrets": _names(0, _MOST_SECRETS),
        "people": _names(0, _MOST_PEOPLE),
        "actions": _names(_FEWEST_RULES, _MOST_RULES),
        "events": _names(_FEWEST_RULES, _MOST_RULES),
        "deadline": {"type": "boolean"},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


OUTLINE: Mapping[str, Any] = _schema()
"""The schema of an outline: flat, and no longer than it has to be."""


def question_about(description: str) -> dict[str, Any]:
    """What a model is told about: as much of the description as a small context takes, and its words.

    A small model copies better than it reads, so what rules found in the text is put before it.
    """
    about = matter(description, at_least=0, at_most=_MOST_WORDS)
    excerpt = clipped(cleaned(description[:_EXCERPT]), _EXCERPT)
    return {"description": excerpt, "words": [*(term.text for term in about.terms), *about.people]}


def matter_of(outline: Mapping[str, Any], description: str) -> Matter:
    """What an outline says there is, whatever of `OUTLINE` it keeps to, and then what the description says.

    Numbers and spans of time are the description's.
    """
    title = name_of(outline.get("title"), NAME_LIMIT)
    source = description if description.strip() else title
    about = matter(source, at_least=0, at_most=_MOST_WORDS)
    people = Names((), about.language.stop).of(
        [*_said_of(outline.get("people"), description), *about.people], at_most=_MOST_PEOPLE
    )
    # Whoever is named is no thing as well.
    names = _names_for(description, [*people, about.player])
    amounts = {term.text.casefold(): term.amount for term in about.terms}
    said = [
        Term(name, role, amounts.get(name.casefold()))
        for key, role in _ROLES.items()
        for name in names.of(outline.get(key), at_most=_MOST_OF_A_ROLE)
    ]
    said += (term for term in about.terms if names.take(term.text))
    again = matter(source, at_least=2 * FEWEST, at_most=2 * FEWEST).terms
    weaker = chain(again, map(Term, map(str, count(1))))
    said += islice((term for term in weaker if names.take(term.text)), max(FEWEST - len(said), 0))
    named = title or about.title or said[0].text
    return Matter(named, about.language, tuple(said), people, about.spans, about.player)


def outlined(outline: Mapping[str, Any], description: str, composed: Blueprint) -> Blueprint:
    """What a model is asked about in sections: what everybody may see, its secrets, and its rules by name.

    Args:
        outline: whatever of `OUTLINE` it keeps to.
        description: what it is about.
        composed: the blueprint of `matter_of` it.
    """
    seen = tuple(one for one in composed.quantities if not one.is_unseen)
    names = _names_for(description, [*composed.people, *(one.term for one in seen)])
    secrets = names.of(outline.get("secrets"), at_most=_MOST_SECRETS)
    return replace(
        composed,
        quantities=(*seen, *(Quantity(name, Role.THREAT, is_hidden=True) for name in secrets)),
        actions=tuple(Action(name, ()) for name in names.of(outline.get("actions"), at_most=_MOST_RULES)),
        events=tuple(Event(name, ()) for name in names.of(outline.get("events"), at_most=_MOST_RULES)),
        has_deadline=bool(composed.due_hours) or outline.get("deadline") is True,
    )


def _names_for(description: str, taken: Iterable[str]) -> Names:
    """Names of a scenario. A model that has nothing to say repeats its instructions, and those are none."""
    told, about = (set(_WORD.findall(text.casefold())) for text in (prompt(PROMPT), description))
    return Names(taken, told - about)


def _said_of(names: Any, description: str) -> list[str]:
    """The names that the description has as well."""
    said = names if isinstance(names, list) else []
    return [name for name in said if isinstance(name, str) and name.casefold() in description.casefold()]
