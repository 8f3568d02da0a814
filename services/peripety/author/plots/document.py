"""Document of a plot: the specification that a plot and the reading of a text give.

The numbers of a plot are fixed, and tuned so that a player who thinks wins often and never surely. Only a
deadline or an amount in the text gives units of its own; then a short search over a few pressures restores
the rates. A number that the text names is never moved.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.plots.addressing import address_words
from peripety.author.plots.amounts import PlotClock, PlotStore, find_clock, find_scale, find_store
from peripety.author.plots.elements import ELEMENTS, add_element_texts, add_elements
from peripety.author.plots.noun_phrases import NounPhrase
from peripety.author.plots.particulars import is_situation_first, list_counted, list_wishes
from peripety.author.plots.phrases import (
    capitalize_sentences,
    count_slots,
    fill_line,
    fill_phrase,
    find_fillers,
    has_filler,
    join_list,
    strip_slots,
)
from peripety.author.plots.plot import (
    PlotNumbers,
    build_bounds,
    build_decay,
    build_plot_actions,
    build_plot_endings,
    build_plot_events,
    build_plot_state,
    build_solutions,
    find_limit,
    find_top,
    gauge_path,
    pace_plot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.author.plots.phrases import Slots
    from peripety.author.plots.plot import Plot
    from peripety.author.text_analysis.reading import Reading

_PRESSURES = (1.0, 0.9, 1.1, 0.8, 1.2, 0.7, 1.35, 0.6, 1.5)
_EASIER = {"easy": 0.85, "hard": 1.15}
_ELEMENT_TURNS = 2
_LAST_PART = 4
_RUNS = 256
_REQUIRED = (("par", 0.66, 0.93), ("curious", 0.155, 0.45), ("random", 0.12, 0.42))
"""Personas that certificates look at, and the least and greatest share of the games that they should win."""
_GREEDY = (0.53, 0.77)
# Lookahead is slow in the core in Python.
_GREEDY_RUNS = 256
_MIN_FAIL_RATE = 0.3
_SPECIFIC = frozenset({"supply", "danger", "ally", "rival"})
"""Slots of things and persons of the text that make a line specific."""
_PREMISE_LIMIT = 1_000
_GOAL_SENTENCE = re.compile(r"^[^.,\u3002\uff0c]*\{goal\}[.\u3002]\s*")


class PlotDocument:
    """Builder of the specification of a plot.

    Args:
        plot: the rules.
        texts: the texts.
        reading: the reading of the user's text.
        slots: the words of the user by slot.
        choose: seeded number for a tag, below a bound.
    """

    def __init__(
        self,
        plot: Plot,
        texts: Mapping[str, Any],
        reading: Reading,
        slots: Slots,
        choose: Callable[[str, int], int],
    ) -> None:
        self._elements = [name for name in ELEMENTS if name in slots]
        self._sources = (plot, texts, reading)
        self._clock = find_clock(reading)
        # The actions of an element take turns from the goal.
        turns = self._clock.turns - _ELEMENT_TURNS * len(self._elements)
        self._plot = add_elements(pace_plot(plot, turns), self._elements)
        self._texts = add_element_texts(texts, self._elements)
        if (main := slots.get("main")) and plot.main:
            told = {**self._texts["actions"][plot.main], "name": main, "act": main}
            self._texts = {**self._texts, "actions": {**self._texts["actions"], plot.main: told}}
        self._common = texts["common"]
        self._reading = reading
        self._slots = slots
        self._choose = choose
        self._fillers = find_fillers(slots, texts)

    def build(
        self, *, spec_id: str, seed: int, mark: str, note: str = "", variation: int = 0
    ) -> dict[str, Any]:
        """Return the specification, calibrated.

        Each element adds an action, so a player who tries everything has less time. If no pressure gives the
        wanted rates, the last element is left out.

        Args:
            spec_id: its id.
            seed: its seed.
            mark: the end of its name.
            note: a sentence about the words of the text, for the premise; may be empty.
            variation: 0 for the first attempt; another number starts the calibration elsewhere.
        """
        written: PlotDocument = self
        trials = [written._calibrate(spec_id, seed, mark, note, variation)]
        while trials[-1][0][0] and written._elements:
            slots = {name: words for name, words in written._slots.items() if name != written._elements[-1]}
            written = PlotDocument(*self._sources, slots, self._choose)
            trials.append(written._calibrate(spec_id, seed, mark, note, variation))
        return min(trials, key=lambda trial: trial[0])[1]

    def _calibrate(
        self, spec_id: str, seed: int, mark: str, note: str, variation: int
    ) -> tuple[tuple[float, float], dict[str, Any]]:
        """Return the distance from the wanted rates, and the specification."""
        clock = self._clock
        store = find_store(self._reading, clock)
        scale = find_scale(self._plot, clock, store)
        head = {
            "spec_version": "1.1",
            "id": spec_id,
            "name": f"{self._build_title()}{self._common['space']}{mark}",
            "seed": seed,
            **({"clock": {"turn": clock.duration}} if clock.duration else {}),
            "horizon": scale.turns,
            "premise": self._build_premise(note),
            "opening": self._build_opening(),
        }
        tail = self._build_texts(clock, store, scale)
        easier = _EASIER.get(self._reading.difficulty, 1.0)
        return calibrate_plot(
            lambda pressure: {
                **head,
                **self._build_rules(PlotNumbers(scale.turns, scale.factors, pressure * easier)),
                **tail,
            },
            variation,
        )

    def _fill(self, line: str) -> str:
        text = fill_line(line, self._slots)
        if text is None:
            raise KeyError(f"a slot of {line!r} has no words")
        return text

    def _pick(self, tag: str, lines: Sequence[str]) -> str:
        """Return one of the lines whose slots all have words, of the user where there is a choice."""
        lines = without_company(lines, self._texts) or lines
        filled = [(line, text) for line in lines if (text := fill_line(line, self._slots))]
        fitting = [(line, text) for line, text in filled if not has_filler(line, self._fillers)] or filled
        most = max(count_slots(line, _SPECIFIC) for line, _ in fitting)
        texts = [text for line, text in fitting if count_slots(line, _SPECIFIC) == most]
        return texts[self._choose(tag, len(texts))]

    def _build_title(self) -> str:
        """Return a title in words of the user, if the text has any that fit."""
        own = [line for line in self._texts["title"] if "{goal}" not in line]
        titles = ["{own_goal}", "{headline}", *own]
        filled = [text for line in titles if (text := fill_phrase(line, self._slots))]
        return _as_title(filled[0] if filled else self._fill(self._texts["title"][0]))

    def _build_premise(self, note: str) -> dict[str, str]:
        told = str(self._slots.get("told", ""))
        line = self._texts["premise"]
        if told and "own_goal" in self._slots:
            # The words of the user name the goal themselves.
            line = _GOAL_SENTENCE.sub("", line)
        # The narrator reads the words of the user back from the first paragraph.
        own = [told[:_PREMISE_LIMIT]] if told else []
        text = "\n\n".join([*own, " ".join(filter(None, [self._fill(line), note]))])
        return {"text": text, "person": "second", "tense": "present"}

    def _build_opening(self) -> str:
        """Return the opening: a paragraph of each part, with the situation in the words of the user."""
        parts = [self._pick(f"opening {place}", lines) for place, lines in enumerate(self._texts["opening"])]
        told = str(self._slots.get("told", ""))
        if told and "own_goal" in self._slots and "situation" not in self._slots:
            told = ""
        elif told and "own_goal" in self._slots:
            # The first part names the goal.
            told = str(self._slots["situation"])
        is_one = self._reading.role is None or not self._reading.role.is_plural
        line = self._common["role"] if is_one else ""
        player = fill_line("{player}", self._slots) or fill_line(line, self._slots)
        role = self._slots.get("role")
        named = role.bare.casefold() if isinstance(role, NounPhrase) else ""
        if told and told == player:
            # The text besides the goal is no more than the role.
            told, parts[0] = "", f"{player}{self._common['space']}{parts[0]}"
            player = ""
        is_named = bool(named) and named in self._reading.text.casefold() and named not in told.casefold()
        if player and (is_named or not self._reading.text or "told" not in self._slots):
            parts[0] = f"{player}{self._common['space']}{parts[0]}"
        shown = f"{told} {self._slots['goal']}"
        deadline = self._reading.deadline.text if self._reading.deadline else ""
        is_timed = bool(deadline) and deadline.casefold() in shown.casefold()
        if "time_left" in self._slots and self._common["deadline"] and not is_timed:
            parts[1] = f"{parts[1]} {self._pick('deadline', self._common['deadline'])}"
        counted = list_counted(self._reading, shown) if told or "own_goal" in self._slots else []
        if self._common["language"] == "en":
            counted = [one for each in counted if (one := address_words(each)) not in shown.casefold()]
        if counted:
            line = self._common["counted"].format(things=join_list(counted, self._common))
            parts[1] = f"{line}{self._common['space']}{parts[1]}"
        if "own_goal" not in self._slots and "unclear" in self._texts:
            parts.insert(-1, self._pick("unclear", self._texts["unclear"]))
        sides = [line for lines in self._common["sides"] if (line := fill_line(lines, self._slots))]
        told_elements = [
            self._pick(f"opening {name}", self._common["elements"][name]["opening"])
            for name in self._elements
        ]
        parts[-1] = str(self._common["space"]).join([parts[-1], *sides, *told_elements])
        if not told:
            return "\n\n".join(parts)
        # Without a goal of their own, or with one that refers back to them, the words of the user come first.
        place = 1 if "own_goal" in self._slots and not is_situation_first(self._reading) else 0
        return "\n\n".join([*parts[:place], capitalize_sentences(told), *parts[place:]])

    def _build_rules(self, scale: PlotNumbers) -> dict[str, Any]:
        plot, texts = self._plot, self._texts
        ends = {**texts["losses"], plot.id: texts["win"]}
        return {
            "state": build_plot_state(plot, scale),
            "bounds": build_bounds(plot, scale),
            "deal": [{"id": "truth", "path": "state.hidden.truth", "values": list(plot.truths)}],
            "actions": [self._describe_action(rule) for rule in build_plot_actions(plot, scale)],
            "random_events": [
                self._name(rule, texts["events"][rule["id"]]["name"])
                for rule in build_plot_events(plot, scale)
            ],
            **{
                section: [
                    {**rule, "message": self._fill(ends[rule["id"]]["message"])}
                    for rule in build_plot_endings(written, scale)
                ]
                for section, written in (
                    ("loss_conditions", plot.losses),
                    ("win_conditions", [{"id": plot.id, "when": plot.win}]),
                )
            },
            "negativity_budget": {
                "min_fail_rate": _MIN_FAIL_RATE,
                "decay_per_turn": build_decay(plot, scale),
            },
            "solutions": build_solutions(plot, scale),
        }

    def _name(self, rule: dict[str, Any], line: str) -> dict[str, Any]:
        return {"id": rule["id"], "name": _as_title(self._fill(line)), **rule}

    def _describe_action(self, rule: dict[str, Any]) -> dict[str, Any]:
        named = self._name(rule, self._texts["actions"][rule["id"]]["name"])
        short = next(action for action in self._plot.actions if action["id"] == rule["id"])
        if "decides" in short:
            worse = [*self._labels_of(short["wrong"], "price"), *self._labels_of(short["wrong"], "worsen")]
            parts = [
                self._common["decision"],
                self._common["mistake"].format(things=join_list(worse, self._common)),
            ]
        else:
            parts = [
                self._common[key].format(things=join_list(things, self._common))
                for key in ("gain", "ease", "price", "worsen")
                if (things := [*self._labels_of(short["does"], key)])
            ]
            parts += [self._common["clue"]] if short.get("once") else []
        told = " ".join(parts)
        return {"id": named["id"], "name": named["name"], "description": told, **rule}

    def _labels_of(self, changes: Mapping[str, int], kind: str) -> Iterator[str]:
        """Yield the labels of the gauges that an action changes in one of the four ways."""
        ways = {(True, False): "gain", (False, False): "price", (False, True): "ease", (True, True): "worsen"}
        for name, change in changes.items():
            gauge = self._plot.gauges.get(name)
            if gauge is not None and ways[change > 0, gauge.is_low_good] == kind:
                label = self._gauge_text(name)["name"]
                if self._common["language"] != "de":
                    label = label[:1].lower() + label[1:]
                if self._common["language"] == "en":
                    label = label.replace(".bare}", "}")
                yield fill_phrase(label, self._slots) or label

    def _find_end(self, name: str, scale: PlotNumbers) -> int | None:
        """Return the value at which a gauge that grows ends the game; None for another gauge."""
        rules = [{"when": self._plot.win}, *self._plot.losses]
        ends = [at for rule in rules if (at := find_limit(rule["when"], name, scale)) is not None]
        return min(ends, default=None)

    def _gauge_text(self, name: str) -> Mapping[str, Any]:
        return find_gauge_text(self._texts, name)

    def _build_texts(self, clock: PlotClock, store: PlotStore, scale: PlotNumbers) -> dict[str, Any]:
        texts = self._texts
        ends = {**texts["losses"], self._plot.id: texts["win"]}
        return {
            "entities": [*self._build_entities()],
            "clues": {
                name: {
                    "about": texts["truth"],
                    "text": {
                        "deal": "truth",
                        "texts": {truth: self._fill(line) for truth, line in lines.items()},
                    },
                }
                for name, lines in texts["clues"].items()
            },
            "labels": dict(self._build_labels(clock, store, scale)),
            "epilogues": {
                name: self._pick(f"epilogue {name}", end["epilogue"]) for name, end in ends.items()
            },
        }

    def _build_entities(self) -> Iterator[dict[str, Any]]:
        # The words of the user name the role themselves.
        role = None if self._slots.get("told") else fill_line(self._common["role"], self._slots)
        you = {"id": "you", "name": self._common["you"], "playable": True}
        yield {**you, **({"description": role} if role else {})}
        wishes = {phrase.definite: wish for phrase, wish in list_wishes(self._reading)}
        for entity, person in self._texts["people"].items():
            secrets = person["secrets"]
            wish = wishes.get(self._fill(f"{{{entity}}}"), "")
            wants = fill_phrase(self._common["wish"]["wants"], {"wish": wish}) if wish else None
            yield {
                "id": entity,
                "name": _as_title(self._fill(f"{{{entity}}}")),
                "voice": person["voice"],
                "wants": wants or fill_phrase(person["wants"], self._slots),
                "secret": fill_phrase(secrets[self._choose(f"secret {entity}", len(secrets))], self._slots),
            }

    def _build_labels(
        self, clock: PlotClock, store: PlotStore, scale: PlotNumbers
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        yield gauge_path("seen"), {"name": self._common["seen"]["name"]}
        for name, gauge in self._plot.gauges.items():
            text = self._gauge_text(name)
            unit = (clock.unit or "turn") if gauge.is_clock else store.unit if gauge.is_store else ""
            words = text["scarce"] if gauge.is_store and store.is_scarce else text["bands"]
            top, end = find_top(gauge, name, scale), self._find_end(name, scale)
            bands = build_clock_bands(words, top) if gauge.is_clock else build_bands(words, top, end)
            line = text["name"]
            if gauge.is_clock and "until" in self._slots:
                line = self._common["until"]["name"]
            yield (
                gauge_path(name),
                {
                    "name": _as_title(self._fill(line)),
                    **({"unit": self._common["units"].get(unit, unit)} if unit else {}),
                    "bands": [*bands],
                },
            )


def find_gauge_text(texts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the texts of a gauge: those of the plot, or the common ones."""
    common = texts["common"]
    found: Mapping[str, Any] = (
        texts.get("gauges", {}).get(name) or common["gauges"].get(name) or common.get(name)
    )
    return found


def without_company(lines: Sequence[str], texts: Mapping[str, Any]) -> list[str]:
    """Return the lines that fit a player among few people: none is about companions without a name.

    Args:
        lines: lines of the texts.
        texts: the texts of the plot, with the variants that are applied.
    """
    common = texts["common"]
    if "few" not in texts.get("applied", ()):
        return [*lines]
    edge = r"\b" if common["has_articles"] else ""
    words = texts.get("company", common["company"])
    company = re.compile(f"(?i){edge}(?:{'|'.join(words)}){edge}")
    return [line for line in lines if not company.search(strip_slots(line))]


def build_bands(words: Sequence[str], top: int, end: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the bands of a gauge from 0 to its maximum; the first band is 0 alone.

    Args:
        words: the words of the bands.
        top: the maximum.
        end: the value at which the game ends, and from which the last word holds; None without one.
    """
    steps = len(words) - 1
    for place, word in enumerate(words):
        upto = round((end or top) * place / steps)
        if end is not None and place == steps - 1:
            upto = end - 1
        yield {"word": word} if place == steps else {"upto": upto, "word": word}


def build_clock_bands(words: Sequence[str], top: int) -> Iterator[dict[str, Any]]:
    """Yield the bands of the time that is left: none, the last quarter, the second half, the first half."""
    over, last, half, ahead = words
    yield {"upto": 0, "word": over}
    yield {"upto": top // _LAST_PART, "word": last}
    yield {"upto": top // 2, "word": half}
    yield {"word": ahead}


def calibrate_plot(
    build: Callable[[float], dict[str, Any]], variation: int = 0
) -> tuple[tuple[float, float], dict[str, Any]]:
    """Return the distance from the wanted rates of the pressure that comes closest, and its specification.

    The distance of the rates that certificates look at comes first, then that of `greedy`.

    Args:
        build: builds the specification for a pressure.
        variation: the number of pressures to try last instead of first.
    """
    best: tuple[tuple[float, float], dict[str, Any]] = ((math.inf, math.inf), {})
    first = variation % len(_PRESSURES)
    for pressure in (*_PRESSURES[first:], *_PRESSURES[:first]):
        spec = build(pressure)
        distance = _measure_distance(spec, best[0][0])
        if distance < best[0]:
            best = distance, spec
        if not any(distance):
            break
    return best


def _measure_distance(spec: Mapping[str, Any], most: float) -> tuple[float, float]:
    """Return how far the required rates and that of `greedy` are from the wanted ones.

    Args:
        spec: the specification.
        most: the distance of the required rates at which the rest is not measured.
    """
    program = engine.compile(json.dumps(spec, ensure_ascii=False))
    required = 0.0
    for persona, least, greatest in _REQUIRED:
        report = program.dry_run(runs=_RUNS, persona=persona)  # type: ignore[arg-type]
        required += _distance_to(report.won / report.runs, least, greatest)
        if required > most:
            return required, math.inf
    report = program.dry_run(runs=_GREEDY_RUNS, persona="greedy")
    return required, _distance_to(report.won / report.runs, *_GREEDY)


def _distance_to(share: float, least: float, greatest: float) -> float:
    return max(least - share, 0) + max(share - greatest, 0)


def _as_title(text: str) -> str:
    return text[:1].upper() + text[1:]
