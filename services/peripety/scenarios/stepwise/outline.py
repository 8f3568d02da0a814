"""Outline: the first answer of a weak model, with the names of quantities, actions and events."""

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
"""The lists of quantities, by role."""
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
"""The JSON Schema of an outline: flat, and as short as possible."""


def question_about(description: str) -> dict[str, Any]:
    """Return the request for an outline: an excerpt of the description for a small context, and its keywords.

    A small model copies better than it reads, so the keywords of the text are added.
    """
    about = matter(description, at_least=0, at_most=_MOST_WORDS)
    excerpt = clipped(cleaned(description[:_EXCERPT]), _EXCERPT)
    return {"description": excerpt, "words": [*(term.text for term in about.terms), *about.people]}


def matter_of(outline: Mapping[str, Any], description: str) -> Matter:
    """Return the terms of an outline, which may violate its schema, followed by those of the description.

    Numbers and time spans are from the description.
    """
    title = name_of(outline.get("title"), NAME_LIMIT)
    source = description if description.strip() else title
    about = matter(source, at_least=0, at_most=_MOST_WORDS)
    people = Names((), about.language.stop).of(
        [*_said_of(outline.get("people"), description), *about.people], at_most=_MOST_PEOPLE
    )
    # A person is not a quantity.
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
    """Parse an outline into a blueprint with public quantities, secrets, and the names of rules.

    Args:
        outline: the answer, which may violate its schema.
        description: the description of the scenario.
        composed: the blueprint composed from `matter_of` the outline.
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
    """Return a name collector without words of the prompt, which weak models repeat."""
    told, about = (set(_WORD.findall(text.casefold())) for text in (prompt(PROMPT), description))
    return Names(taken, told - about)


def _said_of(names: Any, description: str) -> list[str]:
    """Return the names that occur in the description."""
    said = names if isinstance(names, list) else []
    return [name for name in said if isinstance(name, str) and name.casefold() in description.casefold()]
