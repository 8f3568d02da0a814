"""Examples: runs played on the engine to see with one's own eyes what may go wrong in a scenario."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.canonical import canonical
from peripety.sim.schema import pointer
from peripety.sim.types import ActionCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.sim._core import CoreProgram
    from peripety.sim._pure.state import Rules

__all__ = ["LARGE", "Example", "examples"]

LARGE = 1e15
"""Beyond this a number has run away."""
_MOST_TURNS = 2000
_MOST_PAIRS = 60
_RULE_FAILS = frozenset(
    {
        "DIVISION_BY_ZERO",
        "EMPTY_ARRAY",
        "INVALID_ARGUMENTS",
        "MISSING_PATH",
        "NOT_A_NUMBER",
        "TYPE_MISMATCH",
    }
)
_LIMITS = frozenset({"STATE_LIMIT", "TURN_LIMIT"})
_NOTHING = ActionCall("", {})


@dataclass(frozen=True, slots=True)
class Example:
    """Something that was seen in a run.

    Attributes:
        rule: JSON Pointer of the rule that did it.
        message: what happened, in a sentence.
        fails: whether the rule failed; otherwise a number or the state grew too large.
        calls: what was done in each turn up to then.
    """

    rule: str
    message: str
    fails: bool
    calls: tuple[ActionCall, ...]


def examples(rules: Rules, core: CoreProgram, seed: int, horizon: int) -> Iterator[Example]:
    """What goes wrong in some runs, the first example of each rule."""
    seen: set[tuple[str, bool]] = set()
    left = _MOST_TURNS
    for policy in _policies(rules):
        if left <= 0:
            return
        play = _Play(rules, core, seed)
        while play.goes_on and len(play.calls) < min(horizon, left):
            play.turn(policy(len(play.calls)))
        left -= len(play.calls)
        for example in play.examples:
            if (example.rule, example.fails) not in seen:
                seen.add((example.rule, example.fails))
                yield example


def _policies(rules: Rules) -> Iterator[Callable[[int], ActionCall]]:
    """Ways to play: nothing, each action again and again, all of them in turn, one and then another."""
    calls = [call for action in rules.actions for call in _calls(action)]
    yield lambda _turn: _NOTHING
    yield lambda turn: calls[turn % len(calls)]
    for call in calls:
        yield lambda _turn, call=call: call  # type: ignore[misc]
    for number, (first, then) in enumerate(permutations(calls, 2)):
        if number == _MOST_PAIRS:
            return
        yield lambda turn, first=first, then=then: first if turn == 0 else then  # type: ignore[misc]


def _calls(action: dict[str, Any]) -> Iterator[ActionCall]:
    """An action with the greatest and the least of its parameters."""
    for end in (-1, 0) if action["params"] else (-1,):
        yield ActionCall(action["id"], {name: _end(schema, end) for name, schema in action["params"].items()})


def _end(schema: dict[str, Any], end: int) -> Any:
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
class _Play:
    """One run."""

    rules: Rules
    core: CoreProgram
    seed: int
    calls: list[ActionCall] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    goes_on: bool = True

    def __post_init__(self) -> None:
        self._state = self.core.new_state(self.seed)

    def turn(self, call: ActionCall) -> None:
        """Play a turn."""
        self.calls.append(call)
        try:
            if call.action_id:
                self._look(self.core.act(self._state, call.action_id, canonical(call.params)))
            result = self._look(self.core.step(self._state))
            self.goes_on = result["status"]["kind"] == "ongoing"
        except CoreError as error:
            self.goes_on = False
            if error.code in _LIMITS:
                self._note(error.path, error.message, fails=False)

    def _look(self, result: bytes) -> Any:
        seen = json.loads(result)
        for failure in [*seen.get("reasons", ()), *seen["errors"]]:
            if failure["code"] in _RULE_FAILS:
                self._note(failure["rule"], failure["message"], fails=True)
        for change in seen["changes"]:
            if change["op"] in {"inc", "dec", "mul", "set"} and _runs_away(change, self.rules):
                message = f"{change['path']} goes from {change['before']} to {change['after']}"
                self._note(_rule_of(change, self.rules), message, fails=False)
        return seen

    def _note(self, rule: str, message: str, *, fails: bool) -> None:
        place = _resolved(rule, self.rules)
        if all(example.rule != place for example in self.examples):
            self.examples.append(Example(place, message, fails, tuple(self.calls)))


def _runs_away(change: dict[str, Any], rules: Rules) -> bool:
    """Whether a number was calculated that is large, from one that is not."""
    before, after = change.get("before"), change.get("after")
    if not isinstance(before, int | float) or not isinstance(after, int | float):
        return False
    if isinstance(after, bool) or not abs(before) <= LARGE < abs(after):
        return False
    return change["op"] != "set" or after not in _set_to(rules)


def _set_to(rules: Rules) -> list[Any]:
    """The literals that effects put somewhere."""
    return [effect["value"] for _, effect in _effects(rules) if effect["op"] == "set"]


def _effects(rules: Rules) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every effect with its JSON Pointer."""
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


def _rule_of(change: dict[str, Any], rules: Rules) -> str:
    """The rule that made a change."""
    kind, _, name = change["cause"].partition(":")
    match kind:
        case "decay":
            return f"/negativity_budget/decay_per_turn{pointer([change['path']])}"
        case "schedule":
            return _resolved(change["cause"], rules)
        case _:
            section, each = (
                ("actions", rules.actions) if kind == "action" else ("random_events", rules.events)
            )
            return f"/{section}/{next(i for i, rule in enumerate(each) if rule['id'] == name)}"


def _resolved(rule: str, rules: Rules) -> str:
    """The JSON Pointer of a rule; of scheduled effects the one that schedules them."""
    if not rule.startswith("schedule:"):
        return rule
    name = rule.removeprefix("schedule:").partition("/")[0]
    return next(
        place for place, effect in _effects(rules) if effect["op"] == "schedule" and effect["id"] == name
    )
