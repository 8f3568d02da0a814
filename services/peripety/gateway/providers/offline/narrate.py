"""Template narration of a turn, from its committed facts alone, without a model.

Every sentence is a template filled with names and values of the facts, so the narration cannot invent
anything. The choice of templates depends on the facts and not on chance: the same turn always reads the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.authoring.reading import scripts
from peripety.authoring.reading.languages import MARK, Language, detect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["aftermath", "narrate"]

_SHORT_MARK = "(offline)"
_MOST_CHANGES = 12
_VALUE_LIMIT = 80
_NAME_LIMIT = 200
_LANGUAGE_SAMPLE = 2_000
_STEP = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')
_WORD = re.compile(r"[^\W\d_]+")
_ENDED = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f", "\u061f", "\u06d4", "\u0964")


def narrate(facts: Mapping[str, Any], history: Sequence[str] = ()) -> dict[str, Any]:
    """Return an Outcome that narrates the turn.

    Args:
        facts: `{turn, actions, changes, log, event, status}` as the session committed them.
        history: summaries of earlier turns, oldest first. They determine the language. The first narrated
            turn also explains that no model narrates.
    """
    teller = _Teller(facts, detect(_sample(facts, history)))
    mark = _SHORT_MARK if history else MARK
    return {"narrative": " ".join([mark, *teller.sentences()])}


def aftermath(facts: Mapping[str, Any], history: Sequence[str] = ()) -> str:
    """Return the narration of world events and of the ending; empty if the run continues without events.

    Args:
        facts: as for `narrate`.
        history: as for `narrate`.
    """
    teller = _Teller(facts, detect(_sample(facts, history)))
    event = facts.get("event")
    happened = [_sentence(_name(event))] if event else []
    return " ".join([*happened, *teller.ending()])


class _Teller:
    """Selector of sentence templates for the facts of one turn."""

    def __init__(self, facts: Mapping[str, Any], language: Language) -> None:
        self._facts = facts
        self._prose = language.prose
        canonical = json.dumps(facts, sort_keys=True, ensure_ascii=True).encode()
        self._choice = int.from_bytes(hashlib.sha256(canonical).digest()[:4], "big")

    def sentences(self) -> Iterator[str]:
        """Yield sentences for the actions, the events, the changes and the ending."""
        actions = list(self._facts.get("actions") or [])
        yield from (self._say("chose", name=_action(action)) for action in actions)
        if not actions:
            yield self._say("idle")
        yield from (_sentence(line) for line in self._happenings())
        yield from self._changes()
        yield from self.ending()

    def _say(self, use: str, **slots: str) -> str:
        patterns = self._prose[use]
        # Offset by one, so that two consecutive sentences of a kind differ if the language has two templates.
        self._choice += 1
        return _sentence(patterns[self._choice % len(patterns)].format(**slots))

    def _happenings(self) -> list[str]:
        log = [_shown(line) for line in self._facts.get("log") or []]
        event = self._facts.get("event")
        named = [_name(event)] if event else []
        return list(dict.fromkeys([*named, *log]))

    def _changes(self) -> Iterator[str]:
        for change in islice(_net(self._facts.get("changes") or []), _MOST_CHANGES):
            label, in_list = _label(change["path"])
            before, after = change.get("before"), change.get("after")
            yield self._say(
                _use(before, after, in_list=in_list), a=label, before=_value(before), after=_value(after)
            )

    def ending(self) -> Iterator[str]:
        """Yield the sentence of the ending, if the run has ended."""
        status = self._facts.get("status") or {}
        kind = status.get("kind")
        if kind in {"lost", "won", "survived"}:
            if status.get("message"):
                yield _sentence(_shown(status["message"]))
            yield self._say(kind)


def _sample(facts: Mapping[str, Any], history: Sequence[str]) -> list[str]:
    """Return words that reveal the language of a scenario."""
    names = [_name(action) for action in facts.get("actions") or []]
    event = [_name(facts["event"])] if facts.get("event") else []
    status = [str((facts.get("status") or {}).get("message") or "")]
    log = [str(line) for line in facts.get("log") or []]
    text = " ".join([*names, *event, *log, *status, *(str(told).replace(MARK, "") for told in history[-2:])])
    return _WORD.findall(text[:_LANGUAGE_SAMPLE].casefold())


def _net(changes: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one change per path, from its first value to its last; omitted if they are equal."""
    by_path: dict[str, dict[str, Any]] = {}
    for change in changes:
        first = by_path.setdefault(change["path"], dict(change))
        first["after"] = change.get("after")
    return (change for change in by_path.values() if change.get("before") != change["after"])


def _use(before: Any, after: Any, *, in_list: bool) -> str:
    """Return the kind of template for a change."""
    if after is None:
        return "removed"
    if before is None and in_list:
        return "added"
    if _is_number(before) and _is_number(after):
        return "up" if after > before else "down"
    return "set"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _label(path: str) -> tuple[str, bool]:
    """Return the label of a path, and whether it leads into a list."""
    steps = _STEP.findall(path)
    keys = [name or json.loads(quoted) for name, index, quoted in steps if not index]
    # The owner and the visibility are not part of the label.
    kept = keys[2:] if keys[:1] == ["private"] else keys[1:] if keys[:1] == ["hidden"] else keys
    text = _shown(" ".join(kept[-2:]).replace("_", " ")) or _shown(path)
    return text[:1].upper() + text[1:], bool(steps and steps[-1][1])


def _action(action: Mapping[str, Any]) -> str:
    params = ", ".join(
        f"{_shown(name)} {_value(value)}" for name, value in (action.get("params") or {}).items()
    )
    return f"{_name(action)} ({params})" if params else _name(action)


def _name(thing: Mapping[str, Any]) -> str:
    return _shown(thing.get("name") or str(thing.get("id", "")).replace("_", " "))


def _value(value: Any) -> str:
    """Format a value for prose: numbers to ten digits, texts in quotes, everything else as JSON."""
    if _is_number(value):
        return f"{value:.10g}"
    if isinstance(value, str):
        return f"\u201c{scripts.clipped(_shown(value), _VALUE_LIMIT)}\u201d"
    return scripts.clipped(json.dumps(value, ensure_ascii=False), _VALUE_LIMIT)


def _shown(text: Any) -> str:
    """Return a scenario text on one line, without invisible and control characters."""
    return scripts.clipped(" ".join(scripts.cleaned(str(text)).split()), _NAME_LIMIT)


def _sentence(text: str) -> str:
    return text if text.endswith(_ENDED) else f"{text}."
