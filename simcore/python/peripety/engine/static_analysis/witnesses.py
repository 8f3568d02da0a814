"""Witness search: concrete runs on the engine that show what may go wrong.

In each turn, every action is tried on a fork. The search continues with a fork whose run is still ongoing: by
the least used action, or by the largest numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.schema_validation import format_pointer
from peripety.engine.types import ActionCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine._reference.state import Rules
    from peripety.engine.backend_protocol import BackendProgram, BackendState


RUNAWAY_LIMIT = 1e15
"""A number beyond this has grown without bound."""
# Limit of simulated turns for each strategy, including discarded forks.
_MAX_TURNS = 1000
_RULE_ERRORS = frozenset(
    {
        "DIVISION_BY_ZERO",
        "EMPTY_ARRAY",
        "INVALID_ARGUMENTS",
        "MISSING_PATH",
        "NOT_A_NUMBER",
        "TYPE_MISMATCH",
    },
)
_LIMITS = frozenset({"STATE_LIMIT", "TURN_LIMIT"})
_NO_ACTION = ActionCall("", {})


@dataclass(frozen=True, slots=True)
class WitnessRun:
    """Problem observed in a run.

    Attributes:
        rule: JSON Pointer of the rule that caused it.
        message: description, in one sentence.
        is_failure: True if the rule failed; otherwise a number or the state grew too large.
        calls: the action of each turn up to it.
    """

    rule: str
    message: str
    is_failure: bool
    calls: tuple[ActionCall, ...]


def find_witnesses(
    rules: Rules,
    backend_program: BackendProgram,
    seed: int,
    horizon: int,
) -> Iterator[WitnessRun]:
    """Yield the problems found in some runs, one for each rule."""
    seen: set[tuple[str, bool]] = set()
    calls = [_NO_ACTION, *(call for action in rules.actions for call in _iter_extreme_calls(action))]
    for rank in (_rank_by_use, _rank_by_growth):
        play = _SearchRun(rules, backend_program, backend_program.new_state(seed))
        left = _MAX_TURNS
        while play.is_ongoing and len(play.calls) < horizon and left >= len(calls):
            branches = [play.with_turn(call) for call in calls]
            left -= len(calls)
            for branch in branches:
                for example in branch.witnesses:
                    if (example.rule, example.is_failure) not in seen:
                        seen.add((example.rule, example.is_failure))
                        yield example
            play = max(branches, key=lambda branch: (branch.is_ongoing, rank(branch)))


def _rank_by_use(play: _SearchRun) -> float:
    """Rank the least used action first."""
    return -play.calls.count(play.calls[-1])


def _rank_by_growth(play: _SearchRun) -> float:
    """Rank the largest numbers first."""
    return play.largest


def _iter_extreme_calls(action: dict[str, Any]) -> Iterator[ActionCall]:
    """Yield an action with its greatest and its least parameters."""
    for end in (-1, 0) if action["params"] else (-1,):
        yield ActionCall(
            action["id"],
            {name: _get_extreme(schema, end) for name, schema in action["params"].items()},
        )


def _get_extreme(schema: dict[str, Any], end: int) -> Any:
    if "enum" in schema:
        return schema["enum"][end]
    match schema["type"]:
        case "boolean":
            return end == -1
        case "string":
            return "x" if end else ""
        case _:
            return schema["maximum" if end else "minimum"]


@dataclass
class _SearchRun:
    """Run in progress.

    Attributes:
        calls: the action of each turn.
        witnesses: problems of the last turn.
        largest: the largest number that the last turn wrote.
    """

    rules: Rules
    backend_program: BackendProgram
    state: BackendState
    calls: tuple[ActionCall, ...] = ()
    witnesses: list[WitnessRun] = field(default_factory=list)
    largest: float = 0.0
    is_ongoing: bool = True

    def with_turn(self, call: ActionCall) -> _SearchRun:
        """Return a fork of the run with one more turn."""
        play = _SearchRun(self.rules, self.backend_program, self.state.fork(), (*self.calls, call))
        try:
            if call.action_id:
                play.record_result(
                    self.backend_program.act(play.state, call.action_id, canonicalize(call.params)),
                )
            result = play.record_result(self.backend_program.step(play.state))
            play.is_ongoing = result["status"]["kind"] == "ongoing"
        except EngineError as error:
            play.is_ongoing = False
            if error.code in _LIMITS:
                play._add_witness(error.path, error.message, fails=False)
        return play

    def record_result(self, result: bytes) -> Any:
        """Record the problems and numbers in a result of the engine, and return it."""
        seen = json.loads(result)
        for failure in [*seen.get("reasons", ()), *seen["errors"]]:
            if failure["code"] in _RULE_ERRORS:
                self._add_witness(failure["rule"], failure["message"], fails=True)
        for change in seen["changes"]:
            before, after = _as_number(change.get("before")), _as_number(change.get("after"))
            if before is None or after is None:
                continue
            self.largest = max(self.largest, abs(after))
            if abs(before) <= RUNAWAY_LIMIT < abs(after) and not _is_literal_write(change, self.rules):
                message = f"{change['path']} goes from {change['before']} to {change['after']}"
                self._add_witness(_find_rule(change, self.rules), message, fails=False)
        return seen

    def _add_witness(self, rule: str, message: str, *, fails: bool) -> None:
        place = _resolve_rule(rule, self.rules)
        if all(example.rule != place for example in self.witnesses):
            self.witnesses.append(WitnessRun(place, message, fails, self.calls))


def _as_number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_literal_write(change: dict[str, Any], rules: Rules) -> bool:
    """Return True if a change wrote a literal of an effect, without any calculation."""
    return change["op"] == "set" and any(
        effect["op"] == "set" and effect["value"] == change["after"] for _, effect in _iter_effects(rules)
    )


def _iter_effects(rules: Rules) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every effect with its JSON Pointer."""
    pending = [
        (f"/{section}/{index}/effects", rule["effects"])
        for section, each in (("actions", rules.actions), ("random_events", rules.events))
        for index, rule in enumerate(each)
    ]
    while pending:
        place, effects = pending.pop()
        for index, effect in enumerate(effects):
            yield f"{place}/{index}", effect
            if "effects" in effect:
                pending.append((f"{place}/{index}/effects", effect["effects"]))


def _find_rule(change: dict[str, Any], rules: Rules) -> str:
    """Return the JSON Pointer of the rule that made a change."""
    kind, _, name = change["cause"].partition(":")
    match kind:
        case "decay":
            return f"/negativity_budget/decay_per_turn{format_pointer([change['path']])}"
        case "schedule":
            return _resolve_rule(change["cause"], rules)
        case _:
            section, each = (
                ("actions", rules.actions) if kind == "action" else ("random_events", rules.events)
            )
            return f"/{section}/{next(i for i, rule in enumerate(each) if rule['id'] == name)}"


def _resolve_rule(rule: str, rules: Rules) -> str:
    """Return the JSON Pointer of a rule; for scheduled effects, that of the scheduling effect."""
    if not rule.startswith("schedule:"):
        return rule
    name = rule.removeprefix("schedule:").partition("/")[0]
    return next(
        place for place, effect in _iter_effects(rules) if effect["op"] == "schedule" and effect["id"] == name
    )
