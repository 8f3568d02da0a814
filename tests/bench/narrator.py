"""Grades of scripted narrators, and the misdeeds that are caught: `make bench-narrator`.

Four narrators of known quality play the same games. One recalls a detail of turn 2 in turn 8 and narrates
what is true; one forgets the detail; one contradicts the record; one breaks the tone: tense, words of the
machinery, thoughts of others, decisions for the player. Then the sentences of tests/data/narrator_claims are
checked: contradictions, honest sentences, and eight kinds of misdeeds. `withheld` counts those that the
server refuses, `noticed` also those that the benchmark finds. Last, an adversarial player makes 500 false
claims in eight languages to a narrator that believes them. Everything is deterministic, and no time is
measured.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from typing import TYPE_CHECKING

from peripety.session.narration.claims.checker import ClaimChecker
from support.session.adversary import play_against
from support.session.claims import (
    SEALED_NARRATORS,
    SEALED_TURNS,
    TUNING_NARRATORS,
    cases,
    corpus,
    honest_turns,
    more_narrators,
    paraphrases,
)
from support.session.graded_narrators import count_false_alarms, count_misdeeds, grade, narrators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.session.narration.claims.record import TurnFacts

GAMES = 10
ADVERSARY_TURNS = (20, 50)


def lines() -> Iterator[str]:
    """Yield the lines of the tables."""
    row = "{:14} {:>6} {:>8} {:>15} {:>11} {:>9} {:>16}".format
    yield row("narrator", "turns", "recall", "contradictions", "misconduct", "fallback", "flaws per turn")
    for name, narrator in narrators().items():
        figures = asyncio.run(grade(narrator, GAMES)).to_figures()
        yield row(
            name,
            figures["rounds"],
            f"{figures['recalled_details'] / figures['asked_details']:.0%}",
            figures["contradictions"],
            sum(figures["misconduct"].values()),
            figures["server_resolved"],
            f"{figures['flaws'] / figures['rounds']:.2f}",
        )
    yield ""
    for name in ("contradictions", "honest", "counter"):
        for part, is_tuning in (("tuned on", True), ("held out", False)):
            found = _check(name, is_tuning=is_tuning)
            share = found[True] / found.total()
            yield f"{name}, {part}: {found[True]:,} of {found.total():,} withheld ({share:.1%})"
    checker = ClaimChecker(next(case.facts for case in cases("honest") if case.kind == "amount"))
    for kind in ("false", "true"):
        told = paraphrases(kind)
        withheld = sum(bool(checker.check(prose)) for prose in told)
        share = withheld / len(told)
        yield f"freer wordings, {kind}: {withheld} of {len(told)} withheld ({share:.1%})"
    yield ""
    for name in ("narrators", "literary", "scenes_tuning", "scenes_sealed"):
        yield from _measure_corpus(name, corpus(name))
    yield from _measure_corpus("unseen, tuned on", corpus("unseen", is_tuning=True))
    yield from _measure_corpus("unseen, held out", corpus("unseen", is_tuning=False))
    for author in sorted((*TUNING_NARRATORS, *SEALED_NARRATORS, *SEALED_TURNS)):
        yield from _measure_corpus(f"further author {author}", more_narrators(author))
    told_turns = honest_turns()
    withheld = sum(bool(ClaimChecker(facts).check(text)) for facts, text in told_turns)
    noticed = sum(bool(ClaimChecker(facts).find_likely(text)) for facts, text in told_turns)
    yield f"honest turns: {withheld} of {len(told_turns)} withheld, {noticed} noticed"
    yield ""
    row = "{:12} {:>9} {:>9} {:>6} {:>14} {:>9} {:>6} {:>29}".format
    first = next(case for case in cases("honest") if case.kind == "amount")
    alarms, honest = count_false_alarms([*cases("honest"), *cases("counter")])
    heading = ("withheld", "noticed", "of")
    yield row("misdeed", *heading, "fresh withheld", *heading[1:], f"noticed in {honest} honest ones")
    fresh = count_misdeeds(first, "misdeeds_fresh")
    for kind, counts in count_misdeeds(first).items():
        yield row(kind, *counts, *fresh[kind], alarms.get(kind, 0))
    yield ""
    for turns in ADVERSARY_TURNS:
        left = asyncio.run(play_against(turns))
        total = left.turns.total()
        yield f"adversary, {turns} turns a game: {left.changed_facts} of {total} turns changed a fact"
        for language, count in sorted(left.turns.items()):
            yield f"  {language}: the prose asserts the false claim in {left.repeated[language]} of {count}"


def _measure_corpus(title: str, texts: list[tuple[TurnFacts, str, str, str]]) -> Iterator[str]:
    """Yield the shares of prose by other authors that are withheld, by kind."""
    checkers: dict[int, ClaimChecker] = {}
    found: Counter[tuple[str, str, bool]] = Counter()
    noticed: Counter[str] = Counter()
    for facts, label, kind, text in texts:
        checker = checkers.get(id(facts)) or ClaimChecker(facts)
        checkers[id(facts)] = checker
        is_withheld = bool(checker.check(text))
        found[label, kind, is_withheld] += 1
        noticed[label] += not is_withheld and bool(checker.find_likely(text))
    for label in ("false", "true"):
        kinds = {kind for known, kind, _ in found if known == label}
        if not kinds:
            continue
        parts = {kind: (found[label, kind, True], found[label, kind, False]) for kind in sorted(kinds)}
        withheld, passed = (sum(part[place] for part in parts.values()) for place in (0, 1))
        told = ", ".join(f"{kind} {one} of {one + other}" for kind, (one, other) in parts.items())
        more = f"{noticed[label]} more noticed"
        yield f"{title} prose, {label}: {withheld} of {withheld + passed} withheld, {more} ({told})"


def _check(name: str, *, is_tuning: bool) -> Counter[bool]:
    checkers: dict[int, ClaimChecker] = {}
    chosen = [case for case in cases(name) if case.is_tuning is is_tuning]
    return Counter(
        bool(checkers.setdefault(id(case.facts), ClaimChecker(case.facts)).check(case.prose))
        for case in chosen
    )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    for line in lines():
        sys.stdout.write(f"{line}\n")
