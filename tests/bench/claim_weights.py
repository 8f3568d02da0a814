"""Training of the weights of claims: `make claim-weights`.

A logistic model for each kind of claim learns from the texts of tests/data/narrator_claims that tune
the checks. A false text counts by its strongest candidate only, because most of its words are true. Each
author is left out once, with some others: the thresholds are those at which few true texts of left-out
authors are withheld, and none of those that train. Then all authors train the weights, and `weights.txt` of
the claims is written. The texts that are held out are not read. Everything is deterministic.
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
# The share of true texts of left-out authors that each kind may withhold.
MOST_ALARMS = 0.001
RIDGE, RATE, EPOCHS, ROUNDS = 3.3, 0.3, (14, 6, 6), 3
LEAST_ROWS, LEAST_WEIGHT = 3, 0.03
# The number of groups of authors, each of which is left out once.
GROUPS = 5
FILE = Path(weighing.__file__).with_name("weights.txt")
HEADER = (
    "# Weights of the signs of claims: kind, sign, weight. The empty sign is the constant, = the threshold.\n"
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

    def weigh(self, text: Text) -> float:
        """Return the weight of the strongest candidate of a text."""
        own = [self._sum(self._signs(one)) for one in text.candidates if one.kind == self.kind]
        return max(own, default=-math.inf)


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, value))))


def left_out(rows: Sequence[Text]) -> Iterator[tuple[Text, Mapping[str, float]]]:
    """Yield each text with the weights by models that its author did not train."""
    authors = list(dict.fromkeys(one.author for one in rows))
    for group in (frozenset(authors[start::GROUPS]) for start in range(GROUPS)):
        others = [one for one in rows if one.author not in group]
        models = [Model(kind, others) for kind in KINDS]
        for one in rows:
            if one.author in group:
                yield one, {model.kind: model.weigh(one) for model in models}


def _is_passed(text: Text) -> bool:
    return text.label == "true" and not text.is_withheld


def main() -> None:
    """Train, write the weights and print what left-out authors are."""
    rows = [*texts()]
    weighed = [*left_out(rows)]
    thresholds = {}
    for kind in KINDS:
        honest = sorted((told[kind] for text, told in weighed if text.label == "true"), reverse=True)
        thresholds[kind] = honest[int(len(honest) * MOST_ALARMS)] + 0.01
    for author in dict.fromkeys(one.author for one in rows):
        for label in ("false", "true"):
            own = [(text, told) for text, told in weighed if (text.author, text.label) == (author, label)]
            if not own:
                continue
            found = [any(told[kind] > thresholds[kind] for kind in KINDS) for _, told in own]
            either = [one or text.is_withheld for one, (text, _) in zip(found, own, strict=True)]
            rules = sum(text.is_withheld for text, _ in own)
            shares = (f"{part / len(own):.1%}" for part in (rules, sum(found), sum(either)))
            sys.stdout.write(
                f"{author}, {label}, {len(own)}: rules, weights, both " + ", ".join(shares) + "\n"
            )
    lines = []
    for kind in KINDS:
        model = Model(kind, rows)
        weights = model.weights
        passed = [
            (text.author.startswith("narrator "), model.weigh(text)) for text in rows if _is_passed(text)
        ]
        # Further authors may have outliers, the other true texts none.
        further = sorted((weight for is_further, weight in passed if is_further), reverse=True)
        others = (weight for is_further, weight in passed if not is_further)
        highest = max(further[int(len(passed) * MOST_ALARMS / len(KINDS) * 2)], *others)
        lines.append(f"{kind} = {max(thresholds[kind], highest + 0.05):.2f}\n")
        lines += [
            f"{kind} {sign} {weight:.2f}\n"
            for sign, weight in sorted(weights.items())
            if not sign or abs(weight) >= LEAST_WEIGHT
        ]
    FILE.write_text(HEADER + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
