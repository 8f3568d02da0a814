"""Beats: the prose of one turn of a plot, without a model.

A beat is a line of the plot's texts: for an action the first time, again, or under strain; for an event by
its occurrence; for a gauge that crosses a band; for something earlier; for a person who speaks. The words of
the user are read back from the names of the document, so the narrator needs the scenario alone. No line is
repeated in a run. The choice depends on the scenario, the facts and the earlier turns, never on chance.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, TypeGuard

from peripety.author.plots.document import find_gauge_text, without_company
from peripety.author.plots.elements import add_element_texts, add_elements, read_elements
from peripety.author.plots.noun_phrases import NounPhrase, default_phrase, parse_definite
from peripety.author.plots.particulars import list_details, list_facts, list_wishes
from peripety.author.plots.phrases import (
    capitalize_sentences,
    compile_line,
    count_slots,
    fill_line,
    fill_phrase,
    find_fillers,
    has_filler,
    longest_literal,
)
from peripety.author.plots.plot import apply_variants, list_languages, list_plots, load_plot, load_texts
from peripety.author.text_analysis.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.author.plots.plot import Plot
    from peripety.author.text_analysis.reading import Reading


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """Earlier turn of a run.

    Attributes:
        actions: the names of its actions.
        event: the name of its random event; empty without one.
        narrative: its narration, perhaps only the beginning of it.
    """

    actions: tuple[str, ...]
    event: str
    narrative: str


@dataclass(frozen=True, slots=True)
class Scene:
    """Circumstances of a turn to narrate.

    Attributes:
        scenario: the scenario as the narrator's prompt describes it.
        state: the visible state after the turn.
        turns: the earlier turns, oldest first.
    """

    scenario: Mapping[str, Any]
    state: Mapping[str, Any]
    turns: Sequence[EarlierTurn] = ()


@dataclass(frozen=True, slots=True)
class PlotTexts:
    """Plot of a scenario, its texts, and the words of the user.

    Attributes:
        plot: the rules.
        texts: the texts.
        slots: the words of the user, by slot.
        details: the kind and the phrase of what the user names besides.
        wishes: the persons of the user who want something else, with what they want.
        facts: the clauses of the user that stay true.
    """

    plot: Plot
    texts: Mapping[str, Any]
    slots: Mapping[str, NounPhrase]
    details: Sequence[tuple[str, NounPhrase]] = ()
    wishes: Sequence[tuple[NounPhrase, str]] = ()
    facts: Sequence[str] = ()


def recognize_plot(scenario: Mapping[str, Any]) -> PlotTexts | None:
    """Return the plot that a scenario is of; None if it is of none."""
    wins = scenario.get("wins") or [{}]
    plot_id = wins[0].get("id")
    if plot_id not in list_plots():
        return None
    elements = read_elements([event["id"] for event in scenario.get("events", ())])
    for language in list_languages():
        for texts in _list_variants(load_texts(plot_id, language), elements):
            slots = _read_slots(texts, scenario)
            if slots is None:
                continue
            reading = _read_premise(scenario, language)
            details = list_details(reading, slots, texts["common"]) if reading is not None else ()
            wishes = list_wishes(reading) if reading is not None else ()
            facts = list_facts(reading, slots) if reading is not None else ()
            plot = add_elements(load_plot(plot_id), elements)
            return PlotTexts(plot, texts, slots, details, wishes, facts)
    return None


def _list_variants(texts: Mapping[str, Any], elements: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the texts of a plot with elements, in each combination of its variants; the largest first."""
    if not set(elements) <= texts["common"].get("elements", {}).keys():
        return
    names = tuple(texts.get("variants", ()))
    for size in range(len(names), -1, -1):
        for chosen in combinations(names, size):
            yield add_element_texts(apply_variants(texts, chosen), elements)


def _read_premise(scenario: Mapping[str, Any], language: str) -> Reading | None:
    """Return the reading of the user's words in the first paragraph of the premise; None without any."""
    premise = scenario.get("premise") or ""
    told, _, line = (premise if isinstance(premise, str) else str(premise.get("text", ""))).partition("\n\n")
    reading = read_text(told) if line else None
    return reading if reading is not None and reading.language == language else None


def _read_slots(texts: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, NounPhrase] | None:
    """Return the words of the user, read back from names; None if the names are not those of the texts."""
    slots: dict[str, NounPhrase] = {}
    common = texts["common"]
    language = common["language"]
    tables = (common["defaults"], common["alone"], texts.get("defaults", {}))
    defaults = [*(words for table in tables for words in table.values()), common["money"]]
    known = {
        phrase.definite.casefold(): phrase
        for table in defaults
        if (phrase := default_phrase(table, language))
    }

    def parse(words: str) -> NounPhrase:
        return known.get(words.casefold()) or parse_definite(words, language)

    events = {event["id"]: event.get("name", "") for event in scenario.get("events", ())}
    if events.keys() != texts["events"].keys():
        return None
    for name, event in texts["events"].items():
        found = compile_line(event["name"]).match(events[name])
        if found is None:
            return None
        for slot, words in found.groupdict().items():
            slots.setdefault(slot, parse(words))
    for path, label in (scenario.get("labels") or {}).items():
        text = find_gauge_text(texts, path.removeprefix("state."))
        read = compile_line(text["name"]).match(label["name"]) if text else None
        for slot, words in (read.groupdict() if read else {}).items():
            slots.setdefault(slot, parse(words))
    for entity in scenario.get("entities", ()):
        if entity["id"] in texts["people"] and entity.get("name"):
            slots[entity["id"]] = parse(entity["name"])
    return slots


_STRAINED_SHARE = 0.3
_HALF = 0.5
_CHAPTERS = (1 / 3, 2 / 3)
_CHAPTER_TURNS = (5, 9)
_CALLBACK_EVERY = 3
# More lines that only name a thing read as padding.
_DETAIL_TURNS = (1, 5)
_FACT_TURN = 1
"""The remainder of the turns in which a fact of the text comes first."""
_WISH_TURN = 2
"""The remainder of the turns in which a wish comes first."""
_MAX_BEATS = 5
_SURE_CLUES = 2
"""The clues that leave one of the three causes."""
_OFTEN = 4
"""The times from which an action counts as done often."""
_PARTIES = frozenset({"ally", "rival", "third", "left", "right"})
"""Slots of the persons who speak; their names alone do not make a line one of the text."""
_SHORT_UNITS = ("minute", "half_hour")


class TurnBeats:
    """Beats of one turn.

    Args:
        texts: the plot of the scenario.
        scene: the circumstances.
        facts: the facts of the turn.
    """

    def __init__(self, texts: PlotTexts, scene: Scene, facts: Mapping[str, Any]) -> None:
        self._plot = texts.plot
        self._texts = texts.texts
        self._common = texts.texts["common"]
        self._slots = texts.slots
        self._details = texts.details
        self._wishes = texts.wishes
        self._lasting = texts.facts
        self._fillers = find_fillers(texts.slots, self._texts)
        self._scene = scene
        self._facts = facts
        self._turn = int(facts.get("turn") or len(scene.turns) + 1)
        self._told = "\n".join(turn.narrative for turn in scene.turns)
        self._now: list[str] = []
        self._actions = {self._title(text["name"]): name for name, text in self._texts["actions"].items()}
        if main := self._find_main():
            # The name of the main action may be in words of the goal, which no other name contains.
            self._actions[main] = self._plot.main
            act = main if self._common["language"] == "de" else main[:1].lower() + main[1:]
            told = {**self._texts["actions"][self._plot.main], "act": act}
            self._texts = {**self._texts, "actions": {**self._texts["actions"], self._plot.main: told}}
        self._events = {self._title(text["name"]): name for name, text in self._texts["events"].items()}
        self._done = Counter(self._actions.get(name, "") for turn in scene.turns for name in turn.actions)
        self._moves = _net_moves(facts.get("changes") or ())

    def _find_main(self) -> str:
        """Return the name of the main action, if it is in words of the goal; empty otherwise."""
        taken = self._facts.get("actions") or ()
        now = [str(action.get("name")) for action in taken if action.get("id") == self._plot.main]
        names = (
            [*now, *(name for turn in self._scene.turns for name in turn.actions)] if self._plot.main else []
        )
        return next((name for name in names if name and name not in self._actions), "")

    def narrative(self) -> str:
        """Return the prose of the turn, in paragraphs."""
        paragraphs = [
            [*self._chapter(), *self._action_beats(), *self._clue_beats()],
            [*self._event_beats(), *self._crossing_beats()],
        ]
        if not self._is_over:
            paragraphs.append([*self._detail_beats(), *self._callback_beats(), *self._speech_beats()])
        paragraphs.append([*self.ending_beats()])
        return "\n\n".join(self._join(lines) for lines in paragraphs if lines)

    def late_narrative(self) -> str:
        """Return the prose of the event and the ending alone."""
        lines = [*self._event_beats(), *self.ending_beats()]
        return self._join(lines)

    def _join(self, lines: Iterable[str]) -> str:
        return str(self._common["space"]).join(lines)

    @property
    def _stop(self) -> str:
        return str(self._common["stop"])

    @property
    def _is_over(self) -> bool:
        kind = (self._facts.get("status") or {}).get("kind")
        return kind in {"lost", "won", "survived"}

    # --- choice of lines ---

    def _title(self, line: str) -> str:
        text = fill_line(line, self._slots) or ""
        return text[:1].upper() + text[1:]

    def _rank(self, tag: str, line: str) -> bytes:
        key = f"{self._scene.scenario.get('name')}|{sorted(self._moves.items())}|{self._turn}|{tag}|{line}"
        return hashlib.sha256(key.encode("utf-8", "replace")).digest()

    def _is_too_long(self, line: str) -> bool:
        """Return True if a line is about a day or a night, and the turns are minutes."""
        unit = (self._scene.scenario.get("labels") or {}).get("state.time", {}).get("unit")
        short = [self._common["units"][name] for name in _SHORT_UNITS]
        edge = r"\b" if self._common["has_articles"] else ""
        return unit in short and bool(
            re.search(f"{edge}(?:{'|'.join(self._common['long_time'])}){edge}", line)
        )

    def _choose(self, tag: str, lines: Iterable[str], **words: str | NounPhrase) -> Iterator[str]:
        """Yield one of the lines that fit and are not used yet, if such a line exists."""
        slots = {**self._slots, **words}

        named = frozenset(self._slots.keys() - self._fillers - _PARTIES)

        def rank(line: str) -> tuple[bool, bool, bool, bytes]:
            # A line in words of the text comes first.
            is_general = not count_slots(line, named)
            filler = has_filler(line, self._fillers)
            return self._is_too_long(line), filler, is_general, self._rank(tag, line)

        for line in sorted(without_company([*lines], self._texts), key=rank):
            text = fill_line(line, slots)
            # A line is also the same with other words in its slots.
            fixed = longest_literal(line)
            is_used = fixed in self._told or any(fixed in told for told in self._now)
            if text and not is_used:
                self._now.append(text)
                yield text
                return

    def _act(self, action: str) -> str:
        text = self._texts["actions"][action].get("act", "")
        return fill_phrase(text, self._slots) or ""

    # --- parts of a turn ---

    def _chapter(self) -> Iterator[str]:
        start = (self._scene.scenario.get("start") or {}).get("time")
        before, after = self._moves.get("time", (None, None))
        for place, share in enumerate(_CHAPTERS):
            if start and before is not None:
                begins = before > start * (1 - share) >= after
            else:
                begins = "time" not in self._plot.gauges and self._turn == _CHAPTER_TURNS[place]
            if begins and not self._is_over:
                yield from self._choose("chapter", self._common["chapters"][place])

    def _action_beats(self) -> Iterator[str]:
        taken = list(self._facts.get("actions") or ())
        for action in taken:
            yield from self._tell_action(action)
        for refused in self._facts.get("rejected") or ():
            name = self._actions.get(refused.get("name", ""))
            if name:
                yield from self._choose("refused", self._common["refused"], act=self._act(name))
        if not taken and not self._facts.get("rejected"):
            yield from self._choose("idle", self._common["idle"])

    def _tell_action(self, action: Mapping[str, Any]) -> Iterator[str]:
        name = str(action.get("id"))
        text = self._texts["actions"].get(name)
        if text is None:
            shown = str(action.get("name") or name.replace("_", " "))
            yield from self._choose("unknown", self._common["unknown"], name=shown)
            return
        if "right" in text:
            yield from self._choose("decision", text["right" if self._was_right(name) else "wrong"])
            return
        pools = [text["first"]] if not self._done[name] else [text.get("again", ())]
        if self._done[name] and self._is_strained:
            pools.insert(0, text.get("strained", ()))
        for lines in (*pools, self._common["again"]):
            told = [*self._choose("action", lines, act=self._act(name))]
            if told:
                yield from told
                return

    def _was_right(self, action: str) -> bool:
        rule = next(one for one in self._plot.actions if one["id"] == action)
        moved: dict[str, float] = {
            change["path"].removeprefix("state."): (change.get("after") or 0) - (change.get("before") or 0)
            for change in self._facts.get("changes") or ()
            if change.get("cause") == f"action:{action}" and _is_number(change.get("after"))
        }
        wrong = sum(moved.get(name, 0) * step > 0 for name, step in rule["wrong"].items())
        right = sum(moved.get(name, 0) * step > 0 for name, step in rule["right"].items())
        return bool(right >= wrong)

    def _clue_beats(self) -> Iterator[str]:
        for change in self._facts.get("changes") or ():
            text = change.get("after")
            is_new = change.get("before") in (None, "")
            if change["path"].startswith("state.clues.") and isinstance(text, str) and text and is_new:
                yield text

    def _is_decision(self, action: str) -> bool:
        return "right" in self._texts["actions"].get(action, {})

    def _event_beats(self) -> Iterator[str]:
        event = self._facts.get("event")
        if not event:
            return
        text = self._texts["events"].get(event["id"])
        if text is None:
            yield capitalize_sentences(f"{event.get('name') or event['id'].replace('_', ' ')}{self._stop}")
            return
        is_again = event.get("name") in (self._facts.get("repeated") or {})
        pools = (text["again"], text["first"]) if is_again else (text["first"], text["again"])
        for lines in pools:
            told = [*self._choose("event", lines)]
            if told:
                yield from told
                return
        yield from self._choose("event again", self._common["event_again"], name=self._title(text["name"]))

    def _crossing_beats(self) -> Iterator[str]:
        """Yield a line for the gauge that crossed a band, the worst one first."""
        if self._is_over:
            return
        crossed = []
        for name, gauge in self._plot.gauges.items():
            text = find_gauge_text(self._texts, name)
            if name not in self._moves or "down" not in text:
                continue
            before, after = (self._band(name, value) for value in self._moves[name])
            if before == after:
                continue
            is_worse = (after > before) == gauge.is_low_good
            goodness = self._goodness(name)
            if not gauge.start and not gauge.is_low_good:
                # Progress has a line for each band that it reaches.
                lines = text["down"] if is_worse else text["up"][after - 1 : after]
                crossed.append((False, goodness, name, lines))
            elif is_worse == (goodness <= _HALF):
                crossed.append((not is_worse, goodness, name, text["down" if is_worse else "up"]))
        for is_better, _, name, lines in sorted(crossed, key=lambda one: one[:3]):
            # The lines of a gauge that grows towards a loss are in order.
            is_ordered = not is_better and self._plot.gauges[name].is_low_good
            groups = [[line] for line in lines] if is_ordered else [lines]
            told = [
                *islice((line for group in groups for line in self._choose(f"crossing {name}", group)), 1)
            ]
            if told:
                yield from told
                return

    def _callback_beats(self) -> Iterator[str]:
        """Yield a line about something earlier, every few turns."""
        if self._turn < 4 or self._turn % _CALLBACK_EVERY:  # noqa: PLR2004
            return
        common = self._common["callbacks"]
        earlier = self._scene.turns[:-1]
        acts = [self._actions[name] for turn in earlier for name in turn.actions if name in self._actions]
        acts = [name for name in dict.fromkeys(acts) if self._act(name)]
        echoes = [self._events[turn.event] for turn in earlier if turn.event in self._events]
        options = [("event", self._texts["events"][name]["echo"]) for name in dict.fromkeys(echoes)]
        options += [("action", self._act(name)) for name in acts]
        options.sort(key=lambda one: self._rank("callback", one[1]))
        for kind, words in options:
            filled = fill_phrase(words, self._slots)
            if filled and filled not in self._told:
                told = [
                    *self._choose("callback", common[kind], **{"echo" if kind == "event" else "act": filled})
                ]
                if told:
                    yield from told
                    return
        yield from self._choose("callback", self._texts.get("callbacks", ()))

    def _fact_beats(self, told: str) -> Iterator[str]:
        """Yield a line with a fact of the text that no turn has repeated yet."""
        if self._turn % _CALLBACK_EVERY == _FACT_TURN:
            fresh = (one for one in self._lasting if one.casefold() not in told)
            for fact in islice(fresh, 1):
                yield from self._choose("fact", self._common.get("facts", ()), fact=fact)

    def _detail_beats(self) -> Iterator[str]:
        """Yield a line about something that the user named and that has no part of its own."""
        if self._turn % _CALLBACK_EVERY == 0 or len(self._now) >= _MAX_BEATS:
            return
        if self._turn % _CALLBACK_EVERY == _WISH_TURN:
            for phrase, wish in self._wishes:
                told_wish = self._choose("wish", self._common["wish"]["lines"], wisher=phrase, wish=wish)
                if found := [*told_wish]:
                    yield from found
                    return
        told = self._told.casefold()
        if found := [*self._fact_beats(told)]:
            yield from found
            return
        if self._turn not in _DETAIL_TURNS:
            return
        details = [one for one in self._details if one[1].definite.casefold() not in told]
        for kind, phrase in details:
            lines = [*self._choose("detail", self._common["details"][kind], detail=phrase)]
            if lines:
                yield from lines
                return

    def _speech_beats(self) -> Iterator[str]:
        """Yield a line of speech by attitude, unless the turn is full already."""
        if len(self._now) >= _MAX_BEATS or any("\u201c" in line for line in self._now):
            return
        people = sorted(self._texts["people"], key=lambda name: self._rank("speaker", name))
        if self._rank("silence", "")[0] % 2 == 0:
            return
        for person in people:
            if person in self._fillers:
                # A person without words of the user does not speak first.
                continue
            lines: list[str] = []
            for source in (self._texts.get("speech", {}), self._common["speech"]):
                lines += source.get(person, {}).get(self._attitude, ())
            told = [*self._choose("speech", lines)]
            if told:
                yield from told
                return

    def ending_beats(self) -> Iterator[str]:
        """Yield the message of the ending, lines from the record of the run, and the epilogue."""
        status = self._facts.get("status") or {}
        if not self._is_over:
            return
        if status.get("message"):
            yield status["message"]
        yield from self._record_beats()
        if self._facts.get("epilogue"):
            yield f"\n\n{self._facts['epilogue']}"

    def _record_beats(self) -> Iterator[str]:
        """Yield what decided a run, whether it was right, and what happened or was done most."""
        taken = [name for turn in self._scene.turns for name in turn.actions]
        taken += [str(action.get("name")) for action in self._facts.get("actions") or ()]
        acts = [name for one in taken if (name := self._actions.get(one)) and self._act(name)]
        record = self._common["record"]
        end = "lost" if (self._facts.get("status") or {}).get("kind") == "lost" else "won"
        decided = next((name for name in acts if self._is_decision(name)), None)
        if decided is None:
            yield from self._choose("record undecided", record[f"undecided_{end}"])
        else:
            kind = "right" if self._was_told_right(decided) else "wrong"
            if (kind, end) == ("right", "won") and self._scene.state.get("seen", 0) < _SURE_CLUES:
                kind = "guessed"
            yield from self._choose(f"record {kind}", record[f"{kind}_{end}"], act=self._act(decided))
        often = [name for name, count in Counter(acts).most_common(1) if count >= _OFTEN]
        echoes = [self._events[turn.event] for turn in self._scene.turns if turn.event in self._events]
        if often:
            yield from self._choose("record often", record["often"], act=self._act(often[0]))
        elif echoes:
            echo = fill_phrase(self._texts["events"][echoes[-1]]["echo"], self._slots)
            if echo:
                yield from self._choose("record event", record["event"], echo=echo)

    def _was_told_right(self, action: str) -> bool:
        """Return True if a decision of this turn or of an earlier one was right."""
        if any(action == one.get("id") for one in self._facts.get("actions") or ()):
            return self._was_right(action)
        told = self._texts["actions"][action]
        return self._longest_told(told["right"]) > self._longest_told(told["wrong"])

    def _longest_told(self, lines: Iterable[str]) -> int:
        """Return how much of the start of one of some lines is in earlier, perhaps shortened, narrations."""
        filled = [text for line in lines if (text := fill_line(line, self._slots))]
        return max(
            (size for text in filled for size in range(len(text)) if text[:size] in self._told), default=0
        )

    # --- states ---

    def _band(self, name: str, value: Any) -> int:
        bands = (self._scene.scenario.get("labels") or {}).get(f"state.{name}", {}).get("bands", ())
        for place, band in enumerate(bands):
            if "upto" not in band or value <= band["upto"]:
                return place
        return len(bands)

    def _goodness(self, name: str) -> float:
        """Return how good a gauge is, from 0 to 1."""
        value = self._scene.state.get(name)
        bands = (self._scene.scenario.get("labels") or {}).get(f"state.{name}", {}).get("bands", ())
        if not _is_number(value) or len(bands) < 2:  # noqa: PLR2004
            return 1.0
        share = self._band(name, value) / (len(bands) - 1)
        return 1 - share if self._plot.gauges[name].is_low_good else share

    @property
    def _is_strained(self) -> bool:
        return bool(self._worst <= _STRAINED_SHARE)

    @property
    def _worst(self) -> float:
        losing = {loss["when"].partition("<")[0].partition(">")[0] for loss in self._plot.losses}
        return min(
            (self._goodness(name) for name in losing - {"time"} if name in self._plot.gauges), default=1.0
        )

    @property
    def _attitude(self) -> str:
        decided = [name for name in self._done if self._is_decision(name)]
        if decided and self._worst <= _STRAINED_SHARE:
            return "cold"
        return "warm" if self._worst >= _HALF else "wary"


def _net_moves(changes: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return the first and last value of each number that moved, by gauge."""
    moves: dict[str, tuple[float, float]] = {}
    for change in changes:
        name = str(change["path"]).removeprefix("state.")
        before, after = change.get("before"), change.get("after")
        if _is_number(before) and _is_number(after):
            moves[name] = (moves[name][0] if name in moves else before, after)
    return moves


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
