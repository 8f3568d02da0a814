"""Script engine: which rule answers a prompt, and the next position of the conversation."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.sim.patterns import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.sim.patterns import Subject
    from peripety.simulator.scenario.model import Rule, Scenario, Turn

__all__ = ["Advance", "Match", "Position", "Script"]


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """The source of an answer: a rule, or a turn of its sequence."""

    rule: int
    turn: int | None = None

    @property
    def label(self) -> str:
        """The name in captures and reports."""
        entry = f"response[{self.rule}]"
        return entry if self.turn is None else f"{entry}.turn[{self.turn}]"


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a conversation: in the sequence of a rule, before one of its turns."""

    rule: int
    turn: int


@dataclass(frozen=True, slots=True)
class Advance:
    """The effect of a prompt.

    Attributes:
        match: the source of the answer, if any.
        position: the next position of the conversation.
        entered: the rule with `max_matches` of which one match is used up, if any.
    """

    match: Match | None = None
    position: Position | None = None
    entered: int | None = None


class Script:
    """Compiled rules of a script; immutable and thread-safe.

    Args:
        scenario: the source.

    Raises:
        PatternError: a pattern is not valid.

    Attributes:
        scenario: the source.
        names: the identity of each rule across reloads: its name, or one derived from its pattern.
        indices: the inverse of `names`.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        rules = self._rules = scenario.responses
        self._entries = Matcher([rule.pattern for rule in rules])
        places = [(rule, turn) for rule, each in enumerate(rules) for turn in range(len(each.turns))]
        self._expected = Matcher([rules[rule].turns[turn].expect for rule, turn in places])
        self._expectations = {place: number for number, place in enumerate(places)}
        self._limits = {i: rule.max_matches for i, rule in enumerate(rules) if rule.max_matches is not None}
        self._never = tuple(rule for rule, limit in self._limits.items() if limit == 0)
        self.names = tuple(_names(rules))
        self.indices = {name: index for index, name in enumerate(self.names)}

    def advance(self, subject: Subject, position: Position | None, counts: Mapping[int, int]) -> Advance:
        """Find the answer to a prompt.

        An active sequence has priority. An unexpected prompt ends the sequence and is then matched as if the
        sequence had not existed.

        Args:
            subject: the prompt.
            position: the position of the conversation.
            counts: how often rules with `max_matches` were entered.
        """
        if position is not None and self._expected.matches(self._expectation(position), subject):
            return Advance(
                Match(position.rule, position.turn), self._before(position.rule, position.turn + 1)
            )
        used_up = [rule for rule, count in counts.items() if count >= self._limits.get(rule, count + 1)]
        rule = self._entries.first(subject, (*self._never, *used_up))
        if rule is None:
            return Advance()
        return Advance(Match(rule), self._before(rule, 0), rule if rule in self._limits else None)

    def step(self, match: Match) -> Rule | Turn:
        """Return the rule or the turn of a match."""
        rule = self._rules[match.rule]
        return rule if match.turn is None else rule.turns[match.turn]

    def holds(self, position: Position) -> bool:
        """Return True if the position exists; a reload may have removed it."""
        return (position.rule, position.turn) in self._expectations

    def _expectation(self, position: Position) -> int:
        return self._expectations[position.rule, position.turn]

    def _before(self, rule: int, turn: int) -> Position | None:
        return Position(rule, turn) if turn < len(self._rules[rule].turns) else None


def _names(rules: tuple[Rule, ...]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for rule in rules:
        name = rule.name or hashlib.sha256(repr(rule.pattern).encode()).hexdigest()
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"
