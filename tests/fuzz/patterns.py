"""Every index over patterns beside the naive scan, on random cases: `make fuzz-patterns`.

    python -m fuzz.patterns --pairs 1000000 --seed 1

A pair is a set of rules and a subject. Cases depend on the seed alone, so that a run can be repeated.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fuzz.comparison import cores
from fuzz.driver import Fuzzer
from peripety.engine.patterns.matcher import PatternMatcher
from support.engine.pattern_cases import random_rules, random_subject

if TYPE_CHECKING:
    from peripety.engine.patterns.syntax import MatchSubject, Pattern


SUBJECTS_OF_RULES = 40
RULES_IN_BATCH = 50


def compare_rules(seed: int, number: int) -> str | None:
    """Compare one random set of rules over its subjects; what differs, if anything does."""
    random = Random(f"{seed}:patterns:{number}")
    rules = random_rules(random)
    matchers = {name: PatternMatcher(rules.patterns, backend=core) for name, core in cores().items()}
    everything = range(len(rules.patterns))
    for _ in range(SUBJECTS_OF_RULES):
        subject = random_subject(random, rules)
        skip = frozenset(random.choices(everything, k=random.choice((0, 0, 1, 3))))
        expected = rules.naive.first(subject, skip)
        for name, matcher in matchers.items():
            found = matcher.first(subject, skip)
            if found != expected:
                return _told(
                    rules.patterns,
                    subject,
                    f"{name} says {found}, skipping {skip}; it is {expected}",
                )
            index = random.choice(everything)
            if matcher.matches(index, subject) != rules.naive.matches(index, subject):
                return _told(rules.patterns, subject, f"{name} is wrong about pattern {index}")
    return None


def _told(patterns: tuple[Pattern, ...], subject: MatchSubject, what: str) -> str:
    lines = [f"  {index}: {pattern!r}" for index, pattern in enumerate(patterns)]
    return "\n".join([what, f"  {subject!r}", *lines])


if __name__ == "__main__":
    Fuzzer(compare_rules, "pairs", SUBJECTS_OF_RULES, RULES_IN_BATCH).main(__doc__, ", ".join(cores()))
