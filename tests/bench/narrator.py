"""Grades of scripted narrators, and the misdeeds that are caught: `make bench-narrator`.

Four narrators of known quality play the same games. One recalls a detail of turn 2 in turn 8 and narrates
what is true; one forgets the detail; one contradicts the record; one breaks the tone: tense, words of the
machinery, thoughts of others, decisions for the player. Then the sentences of tests/data/narrator_claims are
checked: contradictions, honest sentences, and eight kinds of misdeeds. `withheld` counts those that the
server refuses, `noticed` also those that the benchmark finds. Everything is deterministic, and no time is
measured.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from typing import TYPE_CHECKING

from peripety.session.narration.claims.checker import ClaimChecker
from support.session.claims import cases, paraphrases
from support.session.graded_narrators import count_misdeeds, grade, narrators

if TYPE_CHECKING:
    from collections.abc import Iterator

GAMES = 10


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
    for name in ("contradictions", "honest"):
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
    row = "{:12} {:>9} {:>9} {:>6}".format
    yield row("misdeed", "withheld", "noticed", "of")
    first = next(case for case in cases("honest") if case.kind == "amount")
    for kind, counts in count_misdeeds(first).items():
        yield row(kind, *counts)


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
