"""The first answer of a small model: what there is, what can be done and what may happen, by name."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from peripety.authoring.blueprint import Action, Blueprint, Event, Quantity, Role
from peripety.authoring.reading.names import NAME_LIMIT
from peripety.authoring.reading.scripts import cleaned, clipped
from peripety.authoring.reading.terms import matter
from peripety.scenarios.stepwise.names import NAME, Names, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OUTLINE", "blueprint_of", "question_about"]

_EXCERPT = 2_000
_FEWEST_WORDS, _MOST_WORDS = 8, 12

_ROLES = {
    "resources": (Role.SUPPLY, 1, 3),
    "assets": (Role.WARD, 1, 2),
    "dangers": (Role.THREAT, 1, 2),
    "goals": (Role.GOAL, 1, 2),
}
"""The lists of quantities: what they are, how many at least, how many at most."""
_MOST_SECRETS = 2
_MOST_PEOPLE = 4
_FEWEST_RULES, _MOST_RULES = 4, 8


def _names(at_least: int, at_most: int) -> dict[str, Any]:
    return {"type": "array", "items": NAME, "minItems": at_least, "maxItems": at_most}


def _schema() -> dict[str, Any]:
    properties = {
        "title": {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT},
        **{key: _names(at_least, at_most) for key, (_, at_least, at_most) in _ROLES.items()},
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


def blueprint_of(outline: Mapping[str, Any], description: str) -> Blueprint:
    """What an outline says, whatever of `OUTLINE` it keeps to; the rest comes from the description.

    Its actions and events have names alone. Numbers and spans of time are the description's.
    """
    title = name_of(outline.get("title"), NAME_LIMIT)
    about = matter(description if description.strip() else title, at_least=_FEWEST_WORDS, at_most=_MOST_WORDS)
    people = Names(taken=about.language.stop).of(
        [*_said_of(outline.get("people"), description), *about.people], at_most=_MOST_PEOPLE
    )
    # A small model that has nothing to say repeats the keys; and whoever is named is no thing as well.
    keys = [key for key in ("outline", *OUTLINE["properties"]) if key not in description.casefold()]
    spare = chain((term.text for term in about.terms), map(str, count(1)))
    names = Names(spare, taken=[*people, *keys])
    quantities = [
        Quantity(name, role)
        for key, (role, at_least, at_most) in _ROLES.items()
        for name in names.of(outline.get(key), at_least=at_least, at_most=at_most)
    ]
    secrets = names.of(outline.get("secrets"), at_most=_MOST_SECRETS)
    quantities += (Quantity(name, Role.THREAT, is_hidden=True) for name in secrets)
    amounts = {term.text.casefold(): term.counted for term in about.terms}
    due = about.spans[-1] if len(about.spans) > 1 else 0.0
    return Blueprint(
        title=title or about.title or quantities[0].name,
        phrases=about.language.rules,
        quantities=tuple(replace(each, amount=amounts.get(each.name.casefold())) for each in quantities),
        actions=tuple(Action(name, ()) for name in names.of(outline.get("actions"), at_most=_MOST_RULES)),
        events=tuple(Event(name, ()) for name in names.of(outline.get("events"), at_most=_MOST_RULES)),
        people=people,
        has_deadline=bool(due) or outline.get("deadline") is True,
        hours=next(iter(about.spans), 0.0),
        due_hours=due,
    )


def _said_of(names: Any, description: str) -> list[str]:
    """The names that the description has as well."""
    said = names if isinstance(names, list) else []
    return [name for name in said if isinstance(name, str) and name.casefold() in description.casefold()]
