"""Secrets of a turn: texts that its audience may not know, in a normalized form for matching."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.scenarios.public import Public
from peripety.sessions.events import Accepted, Committed
from peripety.sessions.memory import recalled
from peripety.sim import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.sessions.narrating.scene import Rules, Scene

__all__ = ["LEAST_CHARACTERS", "secrets_of", "squeezed", "texts_in"]

LEAST_CHARACTERS = 6
"""Minimum length of a secret; shorter texts occur in any prose by chance."""

_MOST_SECRETS = 128
_KEPT_RULES = 64
_KEPT_TEXTS = 1_024
_LONGEST = 48
"""Longer texts are matched by their pieces."""
_PIECE, _STEP, _PIECES = 32, 16, 64
_SEPARATOR = "\0"
_BETWEEN = re.compile(r"[^\w\0]|_")


def squeezed(text: str) -> str:
    """Reduce a text to its letters and digits in one case and width, so that spacing does not matter."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKD", text).casefold())


def secrets_of(scene: Scene) -> tuple[str, ...]:
    """Return the texts and long numbers that the audience may not know before or after the turn.

    Texts are not secret if they also occur in the audience's view, in the public rules, in earlier narrations
    or in its input. If there are too many, the longest are returned.
    """
    rules = scene.rules
    known = _SEPARATOR.join((squeezed(_SEPARATOR.join(_known(scene))), _rules_known(rules)))
    unknown = {text: said for each in dict.fromkeys(_unknown(scene)) for text, said in _pieces(each)}
    secrets = (text for text in sorted(unknown, key=len, reverse=True) if unknown[text] not in known)
    return tuple(islice(secrets, _MOST_SECRETS))


@lru_cache(maxsize=_KEPT_TEXTS)
def _pieces(text: str) -> tuple[tuple[str, str], ...]:
    """Return a text, or the pieces of a long one, with their normalized forms, without short ones."""
    if len(text) <= _LONGEST:
        pieces = [text]
    else:
        starts = range(0, min(len(text) - _PIECE, _STEP * (_PIECES - 1)) + 1, _STEP)
        pieces = [text[start : start + _PIECE] for start in starts]
    told = ((piece, squeezed(piece.replace(_SEPARATOR, ""))) for piece in pieces)
    return tuple((piece, form) for piece, form in told if len(form) >= LEAST_CHARACTERS)


# --- unknown to the audience ---


def _unknown(scene: Scene) -> Iterator[str]:
    view, played = scene.view, scene.stage.foresee()
    for tree in (scene.stage.board.state.tree(), played.tree):
        yield from _unseen(tree, view.state(tree))
    for change in played.changes:
        (seen,) = view.changes([change]) or (None,)
        yield from _unseen(change.before, ABSENT if seen is None else seen.before)
        yield from _unseen(change.after, ABSENT if seen is None else seen.after)
    readable = set(recalled(scene.session.memories, view.viewer))
    yield from (memory.content for memory in scene.session.memories if memory not in readable)


def _unseen(whole: Any, seen: Any) -> Iterator[str]:
    """Yield the leaves of a value that are missing in its visible part."""
    if isinstance(whole, dict):
        below = seen if isinstance(seen, dict) else {}
        for key, value in whole.items():
            yield from _unseen(value, below.get(key, ABSENT))
    elif isinstance(whole, list):
        # Restricted items of a list are null in its visible part.
        shown = seen if isinstance(seen, list) else [None] * len(whole)
        for value, item in zip(whole, shown, strict=True):
            yield from _unseen(value, ABSENT if item is None else item)
    elif seen is ABSENT:
        yield from _text(whole)


def _text(leaf: Any) -> Iterator[str]:
    """Yield the text of a recognisable leaf: a string, or a number in decimal notation."""
    if isinstance(leaf, str):
        yield leaf
    elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
        yield f"{leaf:.17g}" if leaf != int(leaf) else str(int(leaf))


# --- known to the audience ---


def _known(scene: Scene) -> Iterator[str]:
    view, played = scene.view, scene.stage.foresee()
    yield scene.input
    for tree in (scene.stage.board.state.tree(), played.tree):
        yield from texts_in(view.state(tree))
    for act in played.actions:
        yield from texts_in(act.params)
    for change in view.changes(played.changes):
        yield from texts_in([change.before, change.after])
    for turn in scene.past:
        if view.hears(turn.pov):
            said = (event for event in turn.events if isinstance(event, Accepted | Committed))
            yield from (event.input if isinstance(event, Accepted) else event.narrative for event in said)


@lru_cache(maxsize=_KEPT_RULES)
def _rules_known(rules: Rules) -> str:
    """Return the normalized literals of the public rules."""
    return squeezed(_SEPARATOR.join(_rule_texts(rules.spec)))


def _rule_texts(spec: Mapping[str, Any]) -> Iterator[str]:
    public = Public(spec)
    yield spec["name"]
    for entity in spec.get("entities", ()):
        yield from texts_in([entity.get(key) for key in ("id", "name", "kind")])
    for rule in (
        *spec["actions"],
        *spec["random_events"],
        *spec["loss_conditions"],
        *spec.get("win_conditions", ()),
    ):
        condition = rule["preconditions"] if "preconditions" in rule else rule["when"]
        part = public.part_of({"effects": (), **rule, "preconditions": condition})
        told = ("id", "name", "description", "message", "params")
        yield from texts_in([part.preconditions, part.effects, part.derives])
        yield from texts_in({key: rule[key] for key in told if key in rule})


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in a value, including keys and numbers in decimal notation."""
    if isinstance(value, dict):
        yield from value
        yield from _in_each(value.values())
    elif isinstance(value, list | tuple):
        yield from _in_each(value)
    else:
        yield from _text(value)


def _in_each(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from texts_in(value)
