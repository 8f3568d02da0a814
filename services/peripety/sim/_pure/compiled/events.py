"""Code generation for random events: at most one new event, then lasting ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure.compiled.source import dispatch, indented

if TYPE_CHECKING:
    from peripety.sim._pure.compiled.code import Code
    from peripety.sim._pure.compiled.rules import RuleWriter
    from peripety.sim._pure.state import Rules

__all__ = ["EventWriter"]


class EventWriter:
    """Generates the statements of a scenario's events.

    Attributes:
        any_lasts: True if some event lasts several turns.
    """

    def __init__(self, rules: Rules, writer: RuleWriter) -> None:
        self._events: list[Any] = rules.events
        self._turns = rules.event_turns
        self._writer = writer
        self.any_lasts = any(turns > 1 for turns in self._turns)

    def lines(self) -> list[str]:
        """Return the statements of a turn's events."""
        if not self._events:
            return []
        bodies = [self._writer.rule(event) for event in self._events]
        if not self.any_lasts:
            return self._drawn(bodies)
        return [
            "happening = [*lasting]",
            *self._drawn([self._onset(number) for number in range(len(bodies))]),
            "for event in happening:",
            *indented(dispatch("event", bodies)),
            "for event in happening:",
            *indented(["if lasting.get(event) == turn: del lasting[event]"]),
        ]

    def _onset(self, number: int) -> list[str]:
        """Return the start of an event; it precedes lasting events."""
        begin = [f"happening.insert(0, {number})"]
        if self._turns[number] > 1:
            begin.append(f"lasting[{number}] = turn + {self._turns[number] - 1}")
        return begin

    def _drawn(self, outcomes: list[list[str]]) -> list[str]:
        """Return the draw among eligible events, with the statements of each outcome."""
        conditions = [self._writer.condition(event["when"]) for event in self._events]
        total = 0.0
        for event in self._events:
            total += event["weight"]
        lines = [f"chance = (draws[0] >> 11) * {2.0**-53!r}"]
        if total <= 1 and not any(condition.fails for condition in conditions):
            return lines + self._lazily(conditions, outcomes)
        return lines + self._eagerly(conditions, outcomes, total)

    def _lazily(self, conditions: list[Code], outcomes: list[list[str]]) -> list[str]:
        """Test conditions in order, up to the drawn event; only for conditions that cannot fail."""
        lines = ["reached = 0.0"]
        for number, (condition, outcome) in enumerate(zip(conditions, outcomes, strict=True)):
            within = f"chance < (reached := reached + {self._events[number]['weight']!r})"
            eligible = self._eligible(number, condition)
            test = f"{eligible} and {within}" if eligible else within
            lines += [f"{'elif' if number else 'if'} {test}:", *indented(outcome)]
        return lines

    def _eagerly(self, conditions: list[Code], outcomes: list[list[str]], total: float) -> list[str]:
        """Evaluate all conditions first; an ineligible event adds no weight."""
        lines, reached = [], "0.0"
        for number, condition in enumerate(conditions):
            weight = repr(self._events[number]["weight"])
            more = f"{reached} + {weight}" if number else weight
            eligible = self._eligible(number, condition)
            lines.append(f"w{number} = {more if not eligible else f'{more} if {eligible} else {reached}'}")
            reached = f"w{number}"
        if total > 1:
            lines.append(f"if {reached} > 1.0: chance *= {reached}")
        for number, outcome in enumerate(outcomes):
            lines += [f"{'elif' if number else 'if'} chance < w{number}:", *indented(outcome)]
        return lines

    def _eligible(self, number: int, condition: Code) -> str:
        """Return the test for a new event; empty if it is always eligible."""
        parts = [f"{number} not in lasting"] if self._turns[number] > 1 else []
        if condition.literal is not True:
            parts.append(condition.operand if parts or not condition.atom else condition.text)
        return " and ".join(parts)
