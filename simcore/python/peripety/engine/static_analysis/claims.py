"""Claims that hold in every run, found by abstract interpretation of a scenario without simulating one.

Dry-runs sample runs, so they cannot show that something never happens. The static analysis can: it follows
all runs at once. The state is replaced by an abstract value (`abstract_domain`): for each path an interval
of numbers, a small set of strings, or the possible kinds. One abstract turn (`fixpoint`) does to it what a
turn does to a state. Every choice of the player, every event and every schedule is joined with the case
that it does not happen. The result covers the reachable states of each turn. A condition that may not hold
in them holds in no run; this module turns that into findings, each with an explanation or an example run.

Properties:

- Sound, not complete. A claim is never wrong within its assumptions: at most one action a turn, and no
  changes by the narrator. A missing claim means nothing.
- Errors of rules and growth beyond limits cannot be claimed from an over-approximation. `witnesses`
  searches for a concrete example on the engine instead, and the finding carries it.
- Bounds need no outward rounding: the engine's own operations are monotone in floating point, so the same
  operations on the bounds give bounds.
- The work has a budget. When it is spent, nothing is claimed, because a partial result would not cover all
  runs.
- The domain is not relational: of two paths that change together, each has its own interval. Conditions
  refine single paths only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine._reference.state import Rules
from peripety.engine.canonical_json import canonicalize, format_number
from peripety.engine.paths import format_path, parse_path
from peripety.engine.static_analysis.abstract_domain import (
    ABSENT,
    ARRAY,
    FALSE,
    MAX_NUMBER,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    TRUE,
    AbstractValue,
    BudgetSpentError,
    StepBudget,
    get_child,
)
from peripety.engine.static_analysis.arithmetic import FAILS
from peripety.engine.static_analysis.conditions import NEGATED, get_plain_path
from peripety.engine.static_analysis.fixpoint import compute_reachable_states, may_hold
from peripety.engine.static_analysis.witnesses import RUNAWAY_LIMIT, find_witnesses
from peripety.engine.types import Proof, ProofCode
from peripety.errors import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.engine.backend_protocol import BackendProgram
    from peripety.engine.static_analysis.fixpoint import ReachableStates


_MAX_MOVES = 4
_MAX_SHOWN = 120


def explain_never(
    condition: Any,
    states: AbstractValue,
    rules: Rules,
    horizon: int,
    never_holds: Callable[[Any], bool],
) -> str:
    """Explain why a condition never holds.

    Args:
        condition: the condition.
        states: all states in which it is evaluated.
        rules: the scenario.
        horizon: number of turns.
        never_holds: returns True if a part of a condition holds in none of these states.
    """
    clause = next((part for part in _iter_conjuncts(condition) if never_holds(part)), None)
    if clause is None:
        return (
            f"With at most one action a turn, it is false in every state that is reachable within "
            f"{format_turns(horizon)}: {_format_expression(condition)}."
        )
    reasons = [_describe_path(path, states, rules) for path in _find_read_paths(clause)]
    course = f"With at most one action a turn, within {format_turns(horizon)}: "
    return f"{course}{'; '.join([*reasons, f'the condition needs {_format_expression(clause)}'])}."


def explain_certain_loss(condition: Any, states: AbstractValue, rules: Rules, turn: int) -> str:
    """Explain why every run is lost by the end of a turn."""
    reasons = [_describe_path(path, states, rules) for path in _find_read_paths(condition)]
    meets = f"every run that is still ongoing meets {_format_expression(condition)} at the end of turn {turn}"
    where = f"; there {'; '.join(reasons)}" if reasons else ""
    return f"With at most one action a turn, {meets}{where}. No run can be won before."


def format_turns(count: int) -> str:
    """Format a number of turns in words."""
    return "one turn" if count == 1 else f"{count} turns"


def _iter_conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the conjuncts of a condition."""
    if isinstance(condition, dict) and isinstance(condition.get("and"), list):
        for part in condition["and"]:
            yield from _iter_conjuncts(part)
    else:
        yield condition


def _find_read_paths(logic: Any) -> list[str]:
    """Return the distinct state paths that an expression reads, in order."""
    found: dict[str, None] = {}

    def visit(part: Any) -> None:
        path = get_plain_path(part)
        if path is not None and path[0] == "state" and all(isinstance(key, str) for key in path):
            found[format_path(path)] = None
        elif isinstance(part, dict | list):
            for item in part.values() if isinstance(part, dict) else part:
                visit(item)

    visit(logic)
    return [*found]


def _describe_path(path: str, states: AbstractValue, rules: Rules) -> str:
    """Describe the values of a path and the rules that change it."""
    value, start = states, rules.initial
    for key in parse_path(path)[1:]:
        value = get_child(value, key)
        start = start.get(key) if isinstance(start, dict) else None
    is_known = not isinstance(start, dict | list | None) and path not in {
        deal["path"] for deal in rules.deals
    }
    begins = f" starts at {_format_literal(start)} and" if is_known else ""
    moves = _describe_moves(path, rules)
    return f"{path}{begins} {_describe_range(value)}{f' ({moves})' if moves else ''}"


def _describe_range(value: AbstractValue) -> str:
    """Describe the possible values of a path, as a predicate."""
    if value.kinds == NUMBER:
        low, high = format_number(value.low), format_number(value.high)
        if value.low == value.high:
            return f"is always {low}"
        if value.low <= -MAX_NUMBER:
            return f"stays at most {high}"
        return f"stays at least {low}" if value.high >= MAX_NUMBER else f"stays between {low} and {high}"
    names = (
        (NUMBER, "a number"),
        (TRUE, "true"),
        (FALSE, "false"),
        (NULL, "null"),
        (TEXT, "a text"),
        (ARRAY, "an array"),
        (OBJECT, "an object"),
        (ABSENT, "nothing"),
    )
    options = [name for kind, name in names if value.kinds & kind and (kind, value.texts) != (TEXT, None)]
    if value.kinds & TEXT and value.texts is not None:
        options = [
            *(each for each in options if each != "a text"),
            *map(_format_literal, sorted(value.texts)),
        ]
    elif value.kinds & TEXT:
        options.append("any text")
    return f"is always {' or '.join(options)}"


def _describe_moves(path: str, rules: Rules) -> str:
    """Describe the constant amounts that rules add to or subtract from a path."""
    moves = []
    for word, section in (("action", rules.actions), ("event", rules.events)):
        for rule in section:
            for effect in rule["effects"]:
                amount = effect.get("value")
                if (
                    effect.get("path") == path
                    and effect["op"] in {"inc", "dec"}
                    and isinstance(amount, float)
                ):
                    signed = amount if effect["op"] == "inc" else 0.0 - amount
                    moves.append(f"{word} {rule['id']} {'+' if signed >= 0 else ''}{format_number(signed)}")
    if path in rules.decay:
        moves.append(f"decay {format_number(0.0 - rules.decay[path])}")
    more = f", and {len(moves) - _MAX_MOVES} more" if len(moves) > _MAX_MOVES else ""
    return ", ".join(moves[:_MAX_MOVES]) + more


def _format_expression(logic: Any) -> str:
    """Format a simple expression in infix notation, others as JSON."""
    if isinstance(logic, dict) and len(logic) == 1:
        name, operand = next(iter(logic.items()))
        if name == "var":
            return str(operand[0] if isinstance(operand, list) and operand else operand)
        if name in NEGATED and isinstance(operand, list):
            return f" {name} ".join(_format_expression(item) for item in operand)
    return _format_literal(logic)


def _format_literal(value: Any) -> str:
    text = canonicalize(value).decode("utf-8")
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


# An array that may exceed this length may exceed the limits of the state.
_LONG_ARRAY = 1000


def find_claims(
    rules: Rules,
    reachable: ReachableStates,
    backend_program: BackendProgram,
    seed: int,
    horizon: int,
) -> list[Proof]:
    """Return the findings about a scenario, by code and in document order.

    Args:
        rules: the scenario.
        reachable: the reachable states.
        backend_program: the compiled scenario, for examples.
        seed: seed of the examples.
        horizon: number of turns.
    """
    errors: dict[str, Proof] = {}
    growth: dict[str, Proof] = {}
    for example in find_witnesses(rules, backend_program, seed, horizon) if _may_fail(reachable) else ():
        code: ProofCode = "TYPE_ERROR" if example.is_failure else "RUNAWAY_GROWTH"
        severity = Severity.ERROR if example.is_failure else Severity.WARNING
        argument = f"In the run of the witness, in turn {len(example.calls)}: {example.message}."
        proofs = errors if example.is_failure else growth
        proofs[example.rule] = Proof(code, example.rule, argument, severity, example.calls)
    for rule, reach in reachable.rules.items():
        if not reach.can_succeed and not any(
            place == rule or place.startswith(f"{rule}/") for place in errors
        ):
            within = format_turns(horizon)
            argument = f"It fails wherever it is reached within {within}, whatever was done before."
            errors[reach.place] = Proof("TYPE_ERROR", reach.place, argument, Severity.ERROR)
    findings = _ClaimFinder(rules, reachable, horizon, errors)
    return [
        *findings.find_certain_losses(),
        *findings.find_unmet_conditions("UNREACHABLE_WIN"),
        *findings.find_unmet_conditions("IMPOSSIBLE_LOSS"),
        *findings.find_dead_rules("DEAD_ACTION"),
        *findings.find_dead_rules("DEAD_EVENT"),
        *errors.values(),
        *growth.values(),
    ]


def _may_fail(reachable: ReachableStates) -> bool:
    """Return True if a rule may fail because of its values, or a value may grow without bound."""
    fails = any(reach.fails & FAILS for reach in reachable.rules.values())
    return fails or any(map(_may_grow, reachable.states.values()))


def _may_grow(value: AbstractValue) -> bool:
    """Return True if the bounds allow a large number, or a string or array of any length."""
    if value.kinds & NUMBER and (value.low < -RUNAWAY_LIMIT or value.high > RUNAWAY_LIMIT):
        return True
    if value.kinds & TEXT and value.texts is None:
        return True
    array, holder = value.array, value.object
    if array is not None and (array.maximum > _LONG_ARRAY or array.item is None or _may_grow(array.item)):
        return True
    if holder is None:
        return False
    return holder.rest is None or any(map(_may_grow, [*holder.fields.values(), holder.rest]))


class _ClaimFinder:
    """Claims about conditions that never or always hold."""

    def __init__(
        self,
        rules: Rules,
        reachable: ReachableStates,
        horizon: int,
        errors: dict[str, Proof],
    ) -> None:
        self._rules = rules
        self._reachable = reachable
        self._horizon = horizon
        self._errors = errors

    def find_certain_losses(self) -> Iterator[Proof]:
        """Yield the loss that ends every run."""
        place = self._reachable.ended_by
        if place is not None and self._reachable.is_certain:
            condition = self._rules.losses[int(place.split("/")[2])]["when"]
            argument = explain_certain_loss(
                condition,
                self._reachable.last,
                self._rules,
                self._reachable.turns,
            )
            yield Proof("CERTAIN_LOSS", place.removesuffix("/when"), argument, Severity.ERROR)

    def find_unmet_conditions(self, code: ProofCode) -> Iterator[Proof]:
        """Yield the conditions of a section that never end a run."""
        section, conditions = (
            ("win_conditions", self._rules.wins)
            if code == "UNREACHABLE_WIN"
            else ("loss_conditions", self._rules.losses)
        )
        never = [
            (f"/{section}/{index}/when", condition["when"])
            for index, condition in enumerate(conditions)
            if f"/{section}/{index}/when" not in self._reachable.satisfiable
        ]
        severity = Severity.ERROR if len(never) == len(conditions) else Severity.WARNING
        for place, condition in never:
            if place not in self._errors:
                argument = self._explain(condition, "conditions", place, {})
                yield Proof(code, place.removesuffix("/when"), argument, severity)

    def find_dead_rules(self, code: ProofCode) -> Iterator[Proof]:
        """Yield the actions or events whose condition never holds."""
        section, key, stage, rules = (
            ("actions", "preconditions", "actions", self._rules.actions)
            if code == "DEAD_ACTION"
            else ("random_events", "when", "events", self._rules.events)
        )
        for index, rule in enumerate(rules):
            place = f"/{section}/{index}/{key}"
            if place not in self._reachable.satisfiable and not any(
                each.startswith(place) for each in self._errors
            ):
                argument = self._explain(rule[key], stage, place, rule.get("params", {}))
                yield Proof(code, f"/{section}/{index}", argument)

    def _explain(self, condition: Any, stage: str, place: str, params: dict[str, Any] | None) -> str:
        if place not in self._reachable.rules:
            return "It is never evaluated: earlier conditions end every run first."
        states = self._reachable.states[stage]
        if stage == "actions" and self._rules.variants[int(place.split("/")[2])]:
            params = None
        return explain_never(
            condition,
            states,
            self._rules,
            self._horizon,
            # The paths of an action with variants are not those of the state.
            lambda part: (
                params is not None and not may_hold(self._rules, part, states, params, self._reachable.turns)
            ),
        )


_MAX_STEPS = 40_000
"""Steps of the analysis, about a second; a specification of 4 KB needs a tenth of them."""


def prove(document: bytes, backend_program: BackendProgram, seed: int, horizon: int) -> tuple[Proof, ...]:
    """Return the claims about a scenario within a horizon; none if the budget is spent.

    Args:
        document: the scenario in canonical form.
        backend_program: the compiled scenario, for examples.
        seed: seed of the examples.
        horizon: number of turns.
    """
    rules = Rules(document)
    try:
        course = compute_reachable_states(rules, horizon, StepBudget(_MAX_STEPS))
    except BudgetSpentError:
        return ()
    return tuple(find_claims(rules, course, backend_program, seed, horizon))
