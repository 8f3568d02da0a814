"""Narration of a turn without a model: beats for the scenario of a plot, templates for any other.

Every sentence of a template is filled with names and values of the facts, so the narration cannot invent
anything. The choice of sentences depends on the facts and not on chance: the same turn always reads the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.author.plots.beats import EarlierTurn, TurnBeats, recognize_plot
from peripety.author.text_analysis import languages
from peripety.author.text_analysis.languages import OFFLINE_MARK, Language, detect_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.author.plots.beats import Scene


_SHORT_MARK = "(offline)"
_MAX_CHANGES = 12
_VALUE_LIMIT = 80
_NAME_LIMIT = 200
_LANGUAGE_SAMPLE = 2_000
_STEP = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f", "\u061f", "\u06d4", "\u0964")


def narrate(
    facts: Mapping[str, Any],
    history: Sequence[str] = (),
    scene: Scene | None = None,
) -> dict[str, Any]:
    """Return an Outcome that narrates the turn.

    Args:
        facts: `{turn, actions, changes, log, event, status}` as the session committed them, with `repeated`:
            how often an event or a line of the log has happened, by its text, unless it is new.
        history: summaries of earlier turns, oldest first. They determine the language. The first narrated
            turn also explains that no model narrates.
        scene: the scenario and the earlier turns. The scenario of a plot is narrated by beats. One with
            labels is narrated by its own texts and bands, because its readers are shown the numbers.
    """
    beats = _find_beats(facts, scene)
    if beats is not None:
        return {"narrative": beats.narrative()}
    teller = _TemplateNarrator(facts, detect_language(_language_sample(facts, history)), scene)
    mark = ("" if teller.has_labels else _SHORT_MARK) if history else OFFLINE_MARK
    return {"narrative": " ".join([mark, *teller.sentences()]).strip()}


def narrate_late_facts(
    facts: Mapping[str, Any],
    history: Sequence[str] = (),
    scene: Scene | None = None,
) -> str:
    """Return the narration of world events and of the ending; empty if the run continues without events.

    Args:
        facts: as for `narrate`.
        history: as for `narrate`.
        scene: as for `narrate`.
    """
    beats = _find_beats(facts, scene)
    if beats is not None:
        return beats.late_narrative()
    teller = _TemplateNarrator(facts, detect_language(_language_sample(facts, history)))
    event = facts.get("event")
    happened = [_to_sentence(teller.repeat(_name(event)))] if event else []
    return " ".join([*happened, *teller.ending_sentence()])


def _find_beats(facts: Mapping[str, Any], scene: Scene | None) -> TurnBeats | None:
    plot = None if scene is None else recognize_plot(scene.scenario)
    return None if plot is None or scene is None else TurnBeats(plot, scene, facts)


def read_earlier_turns(messages: Iterable[tuple[bool, str]]) -> Iterator[EarlierTurn]:
    """Yield the earlier turns of a narrator's prompt.

    Args:
        messages: the messages before the turn, oldest first, each with True if it is the player's side.
    """
    turn: EarlierTurn | None = None
    for is_given, text in messages:
        for value in _parse_lines(text):
            if not is_given:
                if turn is not None:
                    turn = replace(turn, narrative=str(value.get("narrative") or ""))
                continue
            given = value.get("facts", value)
            if not isinstance(given, dict) or "turn" not in given:
                continue
            if turn is not None:
                yield turn
            turn = _read_turn(given)
    if turn is not None:
        yield turn


def _read_turn(given: Mapping[str, Any]) -> EarlierTurn:
    """Return a turn from its facts, or from a line of the summary."""
    done = given.get("did") or [action.get("name") for action in given.get("actions") or ()]
    event = given.get("event") or ""
    named = event if isinstance(event, str) else event.get("name")
    return EarlierTurn(tuple(map(str, done)), str(named or ""), str(given.get("told") or ""))


def _parse_lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


class _TemplateNarrator:
    """Selector of sentence templates for the facts of one turn.

    Args:
        facts: the turn.
        language: the language of the templates.
        scene: the scenario; None if it is unknown.

    Attributes:
        has_labels: True if the scenario names its quantities.
    """

    def __init__(self, facts: Mapping[str, Any], language: Language, scene: Scene | None = None) -> None:
        self._facts = facts
        self._prose = language.prose
        scenario = {} if scene is None else scene.scenario
        self._labels = {
            tuple(_path_keys(path)): label for path, label in (scenario.get("labels") or {}).items()
        }
        self.has_labels = bool(self._labels)
        self._entities = {
            entity["id"]: _name(entity)
            for entity in scenario.get("entities") or ()
            if self.has_labels and isinstance(entity, dict) and "id" in entity
        }
        canonical = json.dumps(facts, sort_keys=True, ensure_ascii=True).encode()
        self._choice = int.from_bytes(hashlib.sha256(canonical).digest()[:4], "big")

    def sentences(self) -> Iterator[str]:
        """Yield sentences for the actions, the events, the changes and the ending."""
        actions = list(self._facts.get("actions") or [])
        # The text of an action describes it better than its name.
        if not (self.has_labels and self._facts.get("log")):
            yield from (self._fill_template("chose", name=self._action_name(action)) for action in actions)
        if not actions:
            yield self._fill_template("idle")
        yield from (_to_sentence(line) for line in self._event_sentences())
        yield from self._change_sentences()
        yield from self.ending_sentence()

    def _action_name(self, action: Mapping[str, Any]) -> str:
        params = ", ".join(
            self._entities.get(value) or f"{_printable(name)} {_format_value(value)}"
            for name, value in (action.get("params") or {}).items()
        )
        return f"{_name(action)} ({params})" if params else _name(action)

    def _fill_template(self, use: str, **slots: str) -> str:
        patterns = self._prose[use]
        # Offset by one, so that two consecutive sentences of a kind differ if the language has two templates.
        self._choice += 1
        return _to_sentence(patterns[self._choice % len(patterns)].format(**slots))

    def _event_sentences(self) -> list[str]:
        log = [_printable(line) for line in self._facts.get("log") or []]
        event = self._facts.get("event")
        named = [_name(event)] if event else []
        # With a text for each action, the texts of the actions come first.
        count = min(len(log), len(self._facts.get("actions") or ())) if self.has_labels else 0
        return [self.repeat(text) for text in dict.fromkeys([*log[:count], *named, *log[count:]])]

    def repeat(self, text: str) -> str:
        """Return the text of an event, with the number of times if it is not new."""
        repeated = self._facts.get("repeated") or {}
        counts = {_printable(told): count for told, count in repeated.items()}
        pattern = self._prose["again"][0]
        return pattern.format(name=text, count=counts[text]) if text in counts else text

    def _change_sentences(self) -> Iterator[str]:
        for change in islice(_net_changes(self._facts.get("changes") or []), _MAX_CHANGES):
            before, after = change.get("before"), change.get("after")
            if self.has_labels:
                named = self._labels.get(tuple(_path_keys(change["path"])), {})
                word = _band_word(named, after)
                if word and word != _band_word(named, before):
                    yield self._fill_template("set", a=_printable(named.get("name")), after=_printable(word))
                continue
            label, in_list = _path_label(change["path"])
            yield self._fill_template(
                _template_kind(before, after, in_list=in_list),
                a=label,
                before=_format_value(before),
                after=_format_value(after),
            )

    def ending_sentence(self) -> Iterator[str]:
        """Yield the sentence of the ending, if the run has ended."""
        status = self._facts.get("status") or {}
        kind = status.get("kind")
        if kind in {"lost", "won", "survived"}:
            if status.get("message"):
                yield _to_sentence(_printable(status["message"]))
            yield self._fill_template(kind)


def _language_sample(facts: Mapping[str, Any], history: Sequence[str]) -> list[str]:
    """Return words that reveal the language of a scenario."""
    names = [_name(action) for action in facts.get("actions") or []]
    event = [_name(facts["event"])] if facts.get("event") else []
    status = [str((facts.get("status") or {}).get("message") or "")]
    log = [str(line) for line in facts.get("log") or []]
    text = " ".join(
        [*names, *event, *log, *status, *(str(told).replace(OFFLINE_MARK, "") for told in history[-2:])],
    )
    return _WORD.findall(text[:_LANGUAGE_SAMPLE].casefold())


def _net_changes(changes: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one change per path, from its first value to its last; omitted if they are equal."""
    by_path: dict[str, dict[str, Any]] = {}
    for change in changes:
        first = by_path.setdefault(change["path"], dict(change))
        first["after"] = change.get("after")
    return (change for change in by_path.values() if change.get("before") != change["after"])


def _template_kind(before: Any, after: Any, *, in_list: bool) -> str:
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


def _path_keys(path: str) -> list[str]:
    """Return the keys of a path, without the indexes of lists."""
    return [name or json.loads(quoted) for name, index, quoted in _STEP.findall(path) if not index]


def _band_word(label: Mapping[str, Any], value: Any) -> str:
    """Return the word of a label for a value; empty without one."""
    if not _is_number(value):
        return ""
    bands = label.get("bands") or ()
    return str(next((band["word"] for band in bands if value <= band.get("upto", value)), ""))


def _path_label(path: str) -> tuple[str, bool]:
    """Return the label of a path, and whether it leads into a list."""
    steps, keys = _STEP.findall(path), _path_keys(path)
    # The owner and the visibility are not part of the label.
    kept = keys[2:] if keys[:1] == ["private"] else keys[1:] if keys[:1] == ["hidden"] else keys
    text = _printable(" ".join(kept[-2:]).replace("_", " ")) or _printable(path)
    return text[:1].upper() + text[1:], bool(steps and steps[-1][1])


def _name(thing: Mapping[str, Any]) -> str:
    return _printable(thing.get("name") or str(thing.get("id", "")).replace("_", " "))


def _format_value(value: Any) -> str:
    """Format a value for prose: numbers to ten digits, texts in quotes, everything else as JSON."""
    if _is_number(value):
        return f"{value:.10g}"
    if isinstance(value, str):
        return f"\u201c{languages.truncate_graphemes(_printable(value), _VALUE_LIMIT)}\u201d"
    return languages.truncate_graphemes(json.dumps(value, ensure_ascii=False), _VALUE_LIMIT)


def _printable(text: Any) -> str:
    """Return a scenario text on one line, without invisible and control characters."""
    return languages.truncate_graphemes(" ".join(languages.clean_text(str(text)).split()), _NAME_LIMIT)


def _to_sentence(text: str) -> str:
    return text if text.endswith(_SENTENCE_ENDS) else f"{text}."
