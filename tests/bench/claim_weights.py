"""Training of the weights of claims: `make claim-weights`.

A logistic model for each kind of claim learns from the texts of tests/data/narrator_claims that tune
the checks. A false text counts by its strongest candidate only, because most of its words are true. Each
author is left out once, with some others. The thresholds are a trade: a true text of a left-out author that
is withheld counts as several contradictions that pass. Then all authors train the weights, and `weights.txt`
of the claims is written. The texts that are held out are not read. Everything is deterministic.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.author.plots.plot import list_plots
from peripety.session.narration.claims import weighing
from peripety.session.narration.claims.checker import ClaimChecker
from peripety.session.narration.claims.weighing import RULE_SIGN
from support.author_plots import document_of, recorded_narrations, subjects
from support.session.claims import (
    TUNING_NARRATORS,
    cases,
    corpus,
    honest_turns,
    more_narrators,
    paraphrases,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.session.narration.claims.record import TurnFacts
    from peripety.session.narration.claims.weighing import ClaimCandidate

KINDS = ("life", "presence", "possession", "ending", "action", "amount")
# The number of contradictions that must be found for each honest text that is withheld.
ALARM_COST = 8
RIDGE, RATE, EPOCHS, ROUNDS = 3.3, 0.3, (14, 6, 6), 3
LEAST_ROWS, LEAST_WEIGHT = 3, 0.03
# The number of groups of authors, each of which is left out once.
GROUPS = 5
FILE = Path(weighing.__file__).with_name("weights.txt")
HEADER = (
    "# Weights of the signs of claims: kind, sign, weight. The empty sign is the constant, = the threshold,\n"
    "# ~ the least weight of what a rule has found.\n"
    "# Written by tests/bench/claim_weights.py.\n"
)


@dataclass(frozen=True)
class Text:
    """A text with its candidates, and the author who is left out with it."""

    author: str
    label: str
    kind: str
    candidates: tuple[ClaimCandidate, ...]
    is_withheld: bool


def texts() -> Iterator[Text]:
    """Yield the texts that train the weights."""
    checkers: dict[int, ClaimChecker] = {}

    def read(author: str, rows: Sequence[tuple[TurnFacts, str, str, str]]) -> Iterator[Text]:
        for facts, label, kind, prose in rows:
            checker = checkers.get(id(facts)) or ClaimChecker(facts)
            checkers[id(facts)] = checker
            found, is_certain = checker.find_candidates(prose)
            yield Text(author, label, "action" if kind == "event" else kind, tuple(found), is_certain)

    for author, names in {
        "narrators": ["narrators"],
        "literary": ["literary"],
        "checks": ["scenes_tuning", "scenes_sealed"],
    }.items():
        for name in names:
            yield from read(author, corpus(name))
    yield from read("unseen", corpus("unseen", is_tuning=True))
    for number in TUNING_NARRATORS:
        yield from read(f"narrator {number}", more_narrators(number))
    plain = [*cases("honest"), *cases("counter")]
    yield from read("checks", [(one.facts, "true", "plain", one.prose) for one in plain if one.is_tuning])
    false = [one for one in cases("contradictions") if one.is_tuning]
    yield from read("checks", [(one.facts, "false", one.kind, one.prose) for one in false])
    first = next(one.facts for one in plain if one.kind == "amount")
    freer = [(first, "true", "plain", prose) for prose in paraphrases("true")]
    yield from read("checks", freer)
    yield from read("checks", [(facts, "true", "turn", prose) for facts, prose in honest_turns()])
    yield from read("plots", [*plot_turns()])


def plot_turns() -> Iterator[tuple[TurnFacts, str, str, str]]:
    """Yield the turns of games of the packed plots, with other seeds than those of the tests."""
    for number, plot in enumerate(list_plots()):
        for reading in subjects()[number % 2 :: 2]:
            for prose, record in recorded_narrations(document_of(reading, plot, 4), 4):
                yield record, "true", "turn", prose


class Model:
    """A logistic model of one kind.

    Args:
        kind: the kind.
        rows: the texts.
    """

    def __init__(self, kind: str, rows: Sequence[Text]) -> None:
        self.kind = kind
        chosen = [one for one in rows if one.label == "true" or one.kind == kind]
        count = Counter(
            sign for one in chosen for other in one.candidates if other.kind == kind for sign in other.signs
        )
        self.weights = dict.fromkeys([sign for sign, many in count.items() if many >= LEAST_ROWS], 0.0)
        self.weights[""] = 0.0
        self._squares = dict.fromkeys(self.weights, 1e-6)
        groups = [
            (one.label == "false", [self._signs(other) for other in one.candidates if other.kind == kind])
            for one in chosen
        ]
        self._groups = [(is_false, signs) for is_false, signs in groups if signs]
        for number in range(ROUNDS):
            self._train(EPOCHS[number], is_first=number == 0)

    def _signs(self, candidate: ClaimCandidate) -> list[tuple[str, float]]:
        return [
            ("", 1.0),
            *((sign, size) for sign, size in candidate.signs.items() if sign in self.weights),
        ]

    def _train(self, epochs: int, *, is_first: bool) -> None:
        rows: list[tuple[float, list[tuple[str, float]]]] = []
        for is_false, candidates in self._groups:
            chosen = candidates if is_first or not is_false else [max(candidates, key=self._sum)]
            rows += [(float(is_false), signs) for signs in chosen]
        many = Counter(sign for _, signs in rows for sign, _ in signs)
        source = random.Random(1)
        weights, squares = self.weights, self._squares
        for _ in range(epochs):
            source.shuffle(rows)
            for target, signs in rows:
                error = _logistic(sum(weights[sign] * size for sign, size in signs)) - target
                for sign, size in signs:
                    slope = error * size + (RIDGE * weights[sign] / many[sign] if sign else 0.0)
                    squares[sign] += slope * slope
                    weights[sign] -= RATE * slope / math.sqrt(squares[sign])

    def _sum(self, signs: Sequence[tuple[str, float]]) -> float:
        return sum(self.weights[sign] * size for sign, size in signs)

    def weigh(self, text: Text, *, is_ruled: bool = False) -> float:
        """Return the weight of the strongest candidate of a text.

        Args:
            text: the text.
            is_ruled: True to weigh only what a rule has found, False for only the rest.
        """
        own = [
            self._sum(self._signs(one))
            for one in text.candidates
            if one.kind == self.kind and (RULE_SIGN in one.signs) is is_ruled
        ]
        return max(own, default=-math.inf)


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, value))))


@dataclass(frozen=True)
class Weighed:
    """A text with its weights by kind, by models that its author did not train."""

    text: Text
    free: Mapping[str, float]
    ruled: Mapping[str, float]


def left_out(rows: Sequence[Text]) -> Iterator[Weighed]:
    """Yield each text with the weights by models that its author did not train."""
    authors = list(dict.fromkeys(one.author for one in rows))
    for group in (frozenset(authors[start::GROUPS]) for start in range(GROUPS)):
        others = [one for one in rows if one.author not in group]
        models = [Model(kind, others) for kind in KINDS]
        for one in rows:
            if one.author in group:
                free = {model.kind: model.weigh(one) for model in models}
                yield Weighed(one, free, {model.kind: model.weigh(one, is_ruled=True) for model in models})


def least_weight(kind: str, weighed: Sequence[Weighed], *, is_ruled: bool) -> float:
    """Return the weight above which findings are worth the honest texts that they withhold.

    Args:
        kind: the kind of the claims.
        weighed: the texts.
        is_ruled: True for what a rule has found, False for claims in texts in which no rule finds anything.
    """
    weights = [
        (one.ruled[kind] if is_ruled else one.free[kind], one.text.label == "false")
        for one in weighed
        if is_ruled or not one.text.is_withheld
    ]
    best, least, worth = 0.0, math.inf, 0.0
    for weight, is_right in sorted((one for one in weights if one[0] > -math.inf), reverse=True):
        worth += 1 if is_right else -ALARM_COST
        if worth > best:
            best, least = worth, weight
    return least - 0.01


def _is_passed(text: Text) -> bool:
    return text.label == "true" and not text.is_withheld


def main() -> None:
    """Train, write the weights and print what left-out authors are."""
    rows = [*texts()]
    weighed = [*left_out(rows)]
    thresholds = {kind: least_weight(kind, weighed, is_ruled=False) for kind in KINDS}
    least = {kind: least_weight(kind, weighed, is_ruled=True) for kind in KINDS}
    for author in dict.fromkeys(one.author for one in rows):
        for label in ("false", "true"):
            own = [one for one in weighed if (one.text.author, one.text.label) == (author, label)]
            if not own:
                continue
            free = [any(one.free[kind] > thresholds[kind] for kind in KINDS) for one in own]
            ruled = [any(one.ruled[kind] > least[kind] for kind in KINDS) for one in own]
            either = [one or other for one, other in zip(free, ruled, strict=True)]
            rules = sum(one.text.is_withheld for one in own)
            shares = (f"{part / len(own):.1%}" for part in (rules, sum(ruled), sum(either)))
            sys.stdout.write(
                f"{author}, {label}, {len(own)}: all rules, weighed, with signs " + ", ".join(shares) + "\n"
            )
    lines = []
    for kind in KINDS:
        model = Model(kind, rows)
        weights = model.weights
        # Further authors may have outliers, the other true texts none.
        highest = max(
            model.weigh(one) for one in rows if _is_passed(one) and not one.author.startswith("narrator ")
        )
        lines += [
            f"{kind} = {max(thresholds[kind], highest + 0.05):.2f}\n",
            f"{kind} ~ {least[kind]:.2f}\n",
        ]
        lines += [
            f"{kind} {sign} {weight:.2f}\n"
            for sign, weight in sorted(weights.items())
            if not sign or abs(weight) >= LEAST_WEIGHT
        ]
    FILE.write_text(HEADER + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
