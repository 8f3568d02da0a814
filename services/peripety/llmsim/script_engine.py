"""Script engine: selects the rule that answers a prompt, and the next position of the conversation.

An `Exchange` is one request in progress: its answer, and callbacks for the moments of its delivery.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.engine.patterns.matcher import PatternMatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.engine.patterns.syntax import MatchSubject
    from peripety.llmsim.delivery.plan import DeliverySettings
    from peripety.llmsim.provider_rules.limits import RateAllowance
    from peripety.llmsim.script.types import Script, ScriptRule, ScriptTurn
    from peripety.llmsim.types import ApiError, SimBlock, SimReply, SimRequest


def _ignore(_answer: Sequence[SimBlock] = ()) -> None:
    """Do nothing: a rejected request has no callbacks."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The decision about a request: a reply or an error.

    The delivery calls `on_started` when the first byte of the answer leaves, then either `on_finished` or
    `on_abandoned`. Extra calls are harmless.

    Attributes:
        request: the request.
        id: 24 letters and digits that identify the exchange.
        delivery: the delivery settings, including the fault.
        label: the source of the answer: `response[i]`, `response[i].turn[j]`, `default`; None without a
            match.
        reply: the answer.
        error: the error sent instead.
        rate_allowance: the remaining rate limits; None without limits.
        on_started: called when the answer starts to leave.
        on_finished: called when the answer is sent, with the answer as prompt blocks if the provider caches
            these.
        on_abandoned: called if the answer is not sent completely.
    """

    request: SimRequest
    id: str
    delivery: DeliverySettings
    label: str | None = None
    reply: SimReply | None = None
    error: ApiError | None = None
    rate_allowance: RateAllowance | None = None
    on_started: Callable[[], None] = _ignore
    on_finished: Callable[[Sequence[SimBlock]], None] = _ignore
    on_abandoned: Callable[[], None] = _ignore


@dataclass(frozen=True, slots=True, order=True)
class RuleMatch:
    """The source of an answer: a rule, or a turn of its sequence."""

    rule: int
    turn: int | None = None

    @property
    def label(self) -> str:
        """The name in captures and reports."""
        entry = f"response[{self.rule}]"
        return entry if self.turn is None else f"{entry}.turn[{self.turn}]"


@dataclass(frozen=True, slots=True)
class ScriptPosition:
    """The position of a conversation: in the sequence of a rule, before one of its turns."""

    rule: int
    turn: int


@dataclass(frozen=True, slots=True)
class PromptResult:
    """The effect of a prompt.

    Attributes:
        match: the source of the answer, if any.
        position: the next position of the conversation.
        limited_rule: the rule with `max_matches` of which one match is used up, if any.
    """

    match: RuleMatch | None = None
    position: ScriptPosition | None = None
    limited_rule: int | None = None


class ScriptEngine:
    """Compiled rules of a script; immutable and thread-safe.

    Args:
        script: the source.

    Raises:
        PatternError: a pattern is not valid.

    Attributes:
        script: the source.
        rule_keys: the identity of each rule across reloads: its name, or one derived from its pattern.
        index_by_key: the inverse of `rule_keys`.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        rules = self._rules = script.responses
        self._entries = PatternMatcher([rule.pattern for rule in rules])
        places = [(rule, turn) for rule, each in enumerate(rules) for turn in range(len(each.turns))]
        self._expected = PatternMatcher([rules[rule].turns[turn].expect for rule, turn in places])
        self._expectations = {place: number for number, place in enumerate(places)}
        self._limits = {i: rule.max_matches for i, rule in enumerate(rules) if rule.max_matches is not None}
        self._never = tuple(rule for rule, limit in self._limits.items() if limit == 0)
        self.rule_keys = tuple(_rule_keys(rules))
        self.index_by_key = {name: index for index, name in enumerate(self.rule_keys)}

    def match_prompt(
        self,
        subject: MatchSubject,
        position: ScriptPosition | None,
        counts: Mapping[int, int],
    ) -> PromptResult:
        """Find the answer to a prompt.

        An active sequence has priority. An unexpected prompt ends the sequence and is then matched as if the
        sequence had not existed.

        Args:
            subject: the prompt.
            position: the position of the conversation.
            counts: how often rules with `max_matches` were entered.
        """
        if position is not None and self._expected.matches(self._expected_entry(position), subject):
            return PromptResult(
                RuleMatch(position.rule, position.turn),
                self._position_before(position.rule, position.turn + 1),
            )
        used_up = [rule for rule, count in counts.items() if count >= self._limits.get(rule, count + 1)]
        rule = self._entries.first(subject, (*self._never, *used_up))
        if rule is None:
            return PromptResult()
        return PromptResult(
            RuleMatch(rule),
            self._position_before(rule, 0),
            rule if rule in self._limits else None,
        )

    def rule_or_turn(self, match: RuleMatch) -> ScriptRule | ScriptTurn:
        """Return the rule or the turn of a match."""
        rule = self._rules[match.rule]
        return rule if match.turn is None else rule.turns[match.turn]

    def has_position(self, position: ScriptPosition) -> bool:
        """Return True if the position exists; a reload may have removed it."""
        return (position.rule, position.turn) in self._expectations

    def _expected_entry(self, position: ScriptPosition) -> int:
        return self._expectations[position.rule, position.turn]

    def _position_before(self, rule: int, turn: int) -> ScriptPosition | None:
        return ScriptPosition(rule, turn) if turn < len(self._rules[rule].turns) else None


def _rule_keys(rules: tuple[ScriptRule, ...]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for rule in rules:
        name = rule.name or hashlib.sha256(repr(rule.pattern).encode()).hexdigest()
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"
