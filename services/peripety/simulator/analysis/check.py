"""Script linter: rules that can never answer, and sequences that can stall.

Every flaw comes with prompts that show it. The linter replays these prompts before it reports the flaw. What
cannot be decided within the budget is not reported.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from peripety.errors import Severity
from peripety.sim.patterns import Pattern, Subject
from peripety.simulator.analysis.search import UndecidedError, find_subject
from peripety.simulator.script import Match, Position, Script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.simulator.scenario.model import Rule, Scenario

__all__ = ["Code", "Flaw", "check"]

MOST_REPEATED = 20
"""Maximum number of repetitions of a prompt until earlier rules reach their limits."""

_ANYTHING = Pattern()


class Code(StrEnum):
    """Kinds of flaws."""

    SHADOWED_RULE = "shadowed_rule"
    UNREACHABLE_TURN = "unreachable_turn"
    DEAD_MAX_MATCHES = "dead_max_matches"
    STALLING_SEQUENCE = "stalling_sequence"


_SEVERITIES = {Code.STALLING_SEQUENCE: Severity.WARNING}


@dataclass(frozen=True, slots=True)
class Flaw:
    """A flaw of a script.

    Attributes:
        code: the kind of flaw.
        place: its location, as a path of the file: `responses[i]` or `responses[i].turns[j]`.
        message: the flaw and its remedy.
        witness: prompts that show the flaw, in the order of one conversation.
        answers: what answers each of them: the place of a rule or a turn, `default_response`, or None.
    """

    code: Code
    place: str
    message: str
    witness: tuple[Subject, ...]
    answers: tuple[str | None, ...]

    @property
    def severity(self) -> Severity:
        """Error if something can never happen, warning if something unintended can happen."""
        return _SEVERITIES.get(self.code, Severity.ERROR)

    def to_json(self) -> dict[str, Any]:
        """Return the flaw as a JSON value."""
        return {
            "code": self.code.value,
            "severity": self.severity.value,
            "place": self.place,
            "message": self.message,
            "witness": [
                {
                    "prompt": subject.text,
                    "model": subject.model,
                    "tool_result": subject.tool_result,
                    "message_index": subject.message_index,
                    "answered_by": answer,
                }
                for subject, answer in zip(self.witness, self.answers, strict=True)
            ],
        }


def check(scenario: Scenario) -> list[Flaw]:
    """Return the flaws of a script, ordered by place.

    Raises:
        PatternError: a pattern is not valid.
    """
    return list(_Check(scenario).flaws())


class _Check:
    def __init__(self, scenario: Scenario) -> None:
        self._script = Script(scenario)
        self._rules = scenario.responses
        self._has_default = scenario.default_response is not None
        self._limited = {
            index: rule.max_matches for index, rule in enumerate(self._rules) if rule.max_matches
        }

    def flaws(self) -> Iterator[Flaw]:
        """Yield all flaws, rule by rule."""
        for number, rule in enumerate(self._rules):
            if rule.max_matches == 0:
                yield self._dead_limit(number)
                continue
            try:
                entry = self._entry(number)
            except UndecidedError:
                continue
            if isinstance(entry, Flaw):
                yield entry
            elif rule.turns and (prompts := self._entering(number, entry)):
                yield from self._sequence(number, rule, prompts)

    # ---- rules

    def _dead_limit(self, number: int) -> Flaw:
        place = _place(Match(number))
        message = "max_matches is 0, so the rule never answers; remove max_matches or the rule"
        try:
            witness = find_subject(self._rules[number].pattern, ())
        except UndecidedError:
            witness = None
        shown = () if witness is None else (witness,)
        return Flaw(Code.DEAD_MAX_MATCHES, place, message, shown, self._replayed(shown))

    def _entry(self, number: int) -> Subject | Flaw:
        """Return a prompt that enters a rule once limited rules are used up, or the flaw."""
        rule = self._rules[number]
        before: list[int] = []
        shown: Subject | None = None
        while True:
            subject = find_subject(rule.pattern, [self._rules[other].pattern for other in before])
            if subject is None:
                return self._shadowed(number, before, shown)
            answer = self._answer(subject, number)
            if answer == Match(number):
                return subject
            if answer is None or answer.rule > number or answer.rule in before:
                raise UndecidedError
            shown = shown or subject
            before.append(answer.rule)

    def _shadowed(self, number: int, before: list[int], shown: Subject | None) -> Flaw:
        place = _place(Match(number))
        if shown is None:
            message = "the pattern matches no prompt; correct the pattern or remove the rule"
            return Flaw(Code.SHADOWED_RULE, place, message, (), ())
        others = " and ".join(_place(Match(other)) for other in sorted(before))
        answer = "answers" if len(before) == 1 else "answer"
        message = f"{others} {answer} everything that the rule matches; move the rule up or remove it"
        return Flaw(Code.SHADOWED_RULE, place, message, (shown,), self._replayed((shown,)))

    # ---- sequences

    def _entering(self, number: int, entry: Subject) -> list[Subject] | None:
        """Return a prompt, repeated until earlier rules reach their limits and its own rule answers."""
        for times in range(1, MOST_REPEATED + 1):
            prompts = [entry] * times
            if self._played(prompts)[-1] == Match(number):
                return prompts
        return None

    def _sequence(self, number: int, rule: Rule, prompts: list[Subject]) -> Iterator[Flaw]:
        stalls = True
        for at, turn in enumerate(rule.turns):
            position = Position(number, at)
            answers = prompts[-1].message_index + 1
            try:
                # The index stays 0 if the caller sends no history.
                subject = find_subject(turn.expect, (), answers=answers) or find_subject(turn.expect, ())
                if subject is None:
                    yield self._unreachable(position, tuple(prompts), last=len(rule.turns) - 1)
                    return
                flaw = self._stalling(position, tuple(prompts), answers) if stalls else None
            except UndecidedError:
                return
            if flaw is not None:
                stalls = False
                yield flaw
            prompts.append(subject)

    def _unreachable(self, position: Position, prompts: tuple[Subject, ...], last: int) -> Flaw:
        place = _place(Match(position.rule, position.turn))
        after = "" if position.turn == last else ", nor do the turns after it"
        message = (
            f"no prompt that follows the earlier ones matches expect, so the turn never answers{after}; "
            "correct expect"
        )
        return Flaw(Code.UNREACHABLE_TURN, place, message, prompts, self._replayed(prompts))

    def _stalling(self, position: Position, prompts: tuple[Subject, ...], answers: int) -> Flaw | None:
        """Return the flaw if a prompt can end the sequence at this turn without a way to continue."""
        place = _place(Match(position.rule, position.turn))
        expect = self._rules[position.rule].turns[position.turn].expect
        unanswered = None if self._has_default else self._unanswered(prompts, expect, answers)
        if unanswered is not None:
            message = (
                "a prompt that the turn does not expect ends the sequence and may get no answer; "
                "add a default_response or a rule for any prompt"
            )
            shown = (*prompts, unanswered)
            return Flaw(Code.STALLING_SEQUENCE, place, message, shown, self._replayed(shown))
        swallowed = self._swallowed(prompts, position.rule, expect, answers)
        if swallowed is not None:
            message = (
                f"an unexpected prompt enters {_place(Match(position.rule))} again, and the sequence "
                "restarts each time; make the pattern of the rule narrower"
            )
            shown = (*prompts, swallowed)
            return Flaw(Code.STALLING_SEQUENCE, place, message, shown, self._replayed(shown))
        return None

    def _unanswered(self, prompts: tuple[Subject, ...], expect: Pattern, answers: int) -> Subject | None:
        """Return a prompt that a turn does not expect and no other rule answers."""
        avoided = [expect]
        while True:
            subject = find_subject(_ANYTHING, avoided, answers=answers)
            if subject is None:
                return None
            answer = self._played((*prompts, subject))[-1]
            if answer is None:
                return subject
            avoided.append(self._pattern(answer, avoided))

    def _swallowed(
        self, prompts: tuple[Subject, ...], number: int, expect: Pattern, answers: int
    ) -> Subject | None:
        """Return an unexpected prompt if every unexpected prompt enters the same rule again."""
        rule = self._rules[number]
        unexpected = find_subject(_ANYTHING, [expect], answers=answers)
        if rule.max_matches is not None or unexpected is None:
            return None
        ways_out = [find_subject(_ANYTHING, [expect, rule.pattern], answers=answers)]
        ways_out += [
            find_subject(other.pattern, [expect], answers=answers)
            for other in self._rules[:number]
            if other.max_matches is None
        ]
        again = Match(number)
        if any(way and self._played((*prompts, way))[-1] != again for way in ways_out):
            return None
        return unexpected if self._played((*prompts, unexpected))[-1] == again else None

    def _pattern(self, answer: Match, avoided: Sequence[Pattern]) -> Pattern:
        pattern = self._rules[answer.rule].pattern
        if answer.turn is not None or pattern in avoided:
            raise UndecidedError
        return pattern

    # ---- playing

    def _answer(self, subject: Subject, number: int) -> Match | None:
        """Return the match if every limited rule but one is used up."""
        counts = {rule: limit for rule, limit in self._limited.items() if rule != number}
        return self._script.advance(subject, None, counts).match

    def _played(self, prompts: Sequence[Subject]) -> list[Match | None]:
        """Return the match of each prompt of a conversation, from its beginning."""
        counts: Counter[int] = Counter()
        position: Position | None = None
        matches = []
        for subject in prompts:
            advance = self._script.advance(subject, position, counts)
            position = advance.position
            if advance.entered is not None:
                counts[advance.entered] += 1
            matches.append(advance.match)
        return matches

    def _replayed(self, prompts: Sequence[Subject]) -> tuple[str | None, ...]:
        """Return the answer of each prompt of a conversation, from its beginning."""
        default = "default_response" if self._has_default else None
        return tuple(default if match is None else _place(match) for match in self._played(prompts))


def _place(match: Match) -> str:
    entry = f"responses[{match.rule}]"
    return entry if match.turn is None else f"{entry}.turns[{match.turn}]"
