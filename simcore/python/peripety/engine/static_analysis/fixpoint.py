"""Reachable states of a scenario, turn by turn, with at most one action a turn.

This is abstract interpretation: one abstract state represents a set of states, and passes through the
phases of a turn as a single state does in the interpreter. Every choice of the player, every event and
every schedule is joined with the case that it does not happen. A state outside the result occurs in no run,
so what never holds in the result is proved never to hold. The reverse is not true: a state of the result
may occur in no run.

Invariants:

- Every step over-approximates. Where the analysis cannot follow a rule, it must include all results of it;
  an omitted result would be a false proof.
- Turns follow one another without widening, because the horizon is finite. Bounds that depend on the turn
  therefore remain exact.
- The loop ends early only if the rules do not depend on time, and the state and the remaining durations of
  events are those of the turn before. All further turns are then equal.
- Steps are counted in a budget, not in seconds, so that every machine gives the same proofs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.variants import Variant
from peripety.engine.schema_validation import format_pointer
from peripety.engine.static_analysis.abstract_domain import (
    BOTTOM,
    OBJECT,
    AbstractObject,
    AbstractValue,
    BudgetSpentError,
    StepBudget,
    from_literal,
    join,
    number_range,
    replace_member,
)
from peripety.engine.static_analysis.effects import EffectsResult, EffectTime, ScheduledEffects, apply_effects
from peripety.engine.static_analysis.evaluation import (
    AbstractEvaluation,
    get_param_domains,
    is_time_dependent,
    sort_derives,
)

if TYPE_CHECKING:
    from peripety.engine._reference.state import Rules


_MAX_STEPS_OF_CONDITION = 10_000


@dataclass
class RuleReachability:
    """Possible results of one rule.

    Attributes:
        is_tried: True if it may be evaluated or applied.
        can_succeed: True if it may then succeed.
        fails: possible errors, as bits.
        place: JSON Pointer of the part that failed first.
    """

    is_tried: bool = False
    can_succeed: bool = False
    fails: int = 0
    place: str = ""


@dataclass
class ReachableStates:
    """Reachable states and rule results of all runs within a horizon.

    Attributes:
        satisfiable: JSON Pointers of conditions that may hold.
        rules: possible results of each rule, by the JSON Pointer of its condition or of the scheduling
            effect.
        states: states that actions, events and conditions may meet, by these three words.
        last: states of the last turn, before its end conditions.
        turns: number of analysed turns. Fewer than the horizon means that a fixpoint is reached or every run
            has ended.
        ended_by: JSON Pointer of the condition that ends every remaining run in the last turn.
        is_certain: True if it is a loss and no run can be won before, so that it ends every run.
    """

    satisfiable: set[str] = field(default_factory=set)
    rules: dict[str, RuleReachability] = field(default_factory=dict)
    states: dict[str, AbstractValue] = field(default_factory=lambda: dict.fromkeys(_STAGES, BOTTOM))
    last: AbstractValue = BOTTOM
    turns: int = 0
    ended_by: str | None = None
    is_certain: bool = False

    def record(self, rule: str, *, works: bool, fails: int, place: str) -> None:
        """Record the possible results of a rule."""
        reach = self.rules.setdefault(rule, RuleReachability())
        reach.is_tried = True
        reach.can_succeed = reach.can_succeed or works
        reach.place = place if fails and not reach.fails else reach.place
        reach.fails |= fails


_Step = Callable[[AbstractValue], AbstractValue]
_NO_MEMBERS = AbstractValue(OBJECT, object=AbstractObject({}, BOTTOM))
_STAGES: tuple[str, ...] = ("actions", "events", "conditions")
_SECTIONS = (("loss_conditions", True), ("win_conditions", False))


def compute_reachable_states(rules: Rules, horizon: int, budget: StepBudget) -> ReachableStates:
    """Compute the reachable states of a scenario within a horizon.

    Raises:
        BudgetSpentError: the budget is too small.
    """
    return _AbstractSimulation(rules, horizon, budget).run()


class _AbstractSimulation:
    """Abstract simulation of all runs at once."""

    def __init__(self, rules: Rules, horizon: int, budget: StepBudget) -> None:
        self._rules = rules
        self._horizon = horizon
        self._budget = budget
        self._reachable = ReachableStates()
        self._entities = from_literal(rules.entities)
        # For each action its variants, with the domains of their parameters.
        self._actions = [
            [
                (variant.action, get_param_domains({**action["params"], **_fix_params(variant.values)}))
                for variant in rules.variants[index] or [Variant({}, action)]
            ]
            for index, action in enumerate(rules.actions)
        ]
        self._turn = 0
        # Effects that may be due, by turn and by their list in the rules.
        self._pending: dict[int, dict[int, ScheduledEffects]] = {}
        # Last turn in which each event may continue.
        self._lasting: dict[int, int] = {}
        self._is_steady = not is_time_dependent(rules)

    def run(self) -> ReachableStates:
        tree: AbstractValue | None = self._deal(from_literal(self._rules.initial))
        before: Any = None
        while tree is not None and self._turn < self._horizon:
            standing = (tree, {event: until - self._turn for event, until in self._lasting.items()})
            if self._is_steady and before == standing:
                break
            before = standing
            self._turn += 1
            tree = self._play_turn(tree)
        self._reachable.turns = self._turn
        return self._reachable

    def _play_turn(self, tree: AbstractValue) -> AbstractValue | None:
        """Return the states of ongoing runs after a turn; None if every run has ended."""
        tree = self._open_turn(tree)
        tree = self._act(tree)
        if self._rules.ends_early:
            ongoing = self._check_endings(tree)
            if ongoing is None:
                return None
            tree = ongoing
        tree = self._apply_events(tree)
        tree = self._apply_decay(tree)
        return self._check_endings(tree)

    def _record_states(self, stage: str, tree: AbstractValue) -> None:
        self._reachable.states[stage] = join(self._reachable.states[stage], tree)

    def _deal(self, tree: AbstractValue) -> AbstractValue:
        """Return the states after any deal."""
        for index, entry in enumerate(self._rules.deals):
            effects = [{"op": "set", "path": entry["path"], "value": value} for value in entry["values"]]
            place = f"/deal/{index}"
            dealt = [self._apply_effects(tree, [effect], {}, place, "").tree for effect in effects]
            tree = reduce(join, dealt)
        return tree

    # --- phases of a turn ---

    def _open_turn(self, tree: AbstractValue) -> AbstractValue:
        due = self._pending.pop(self._turn, {})
        return self._apply_in_any_order(tree, [self._scheduled_step(entry) for entry in due.values()])

    def _act(self, tree: AbstractValue) -> AbstractValue:
        self._record_states("actions", tree)
        result = tree
        for index, variants in enumerate(self._actions):
            place = f"/actions/{index}"
            for action, params in variants:
                data = self._find_satisfying(action["preconditions"], f"{place}/preconditions", tree, params)
                if data is not None:
                    result = join(result, self._apply_rule(data, action, place) or result)
        return result

    def _apply_events(self, tree: AbstractValue) -> AbstractValue:
        self._record_states("events", tree)
        continuing = [event for event, until in self._lasting.items() if until >= self._turn]
        begun = self._begin_events(tree)
        fresh = tree
        for index, after in begun.items():
            fresh = fresh if index in continuing else join(fresh, after)
        result = self._continue_events(fresh, continuing)
        for index in continuing:
            # An event that begins is not already lasting, so it is applied once in the turn either way.
            if index in begun:
                others = [other for other in continuing if other != index]
                result = join(result, self._continue_events(begun[index], others))
        return result

    def _begin_events(self, tree: AbstractValue) -> dict[int, AbstractValue]:
        """Return the states after each event that may begin in this turn."""
        begun = {}
        for index, event in enumerate(self._rules.events):
            place = f"/random_events/{index}"
            data = self._find_satisfying(event["when"], f"{place}/when", tree, _NO_MEMBERS)
            after = None if data is None else self._apply_rule(data, event, place)
            if after is not None:
                begun[index] = after
                until = self._turn + self._rules.event_turns[index] - 1
                if until > self._turn:
                    self._lasting[index] = until
        return begun

    def _continue_events(self, tree: AbstractValue, events: list[int]) -> AbstractValue:
        """Return the states after some of the events that may have begun in earlier turns."""
        return self._apply_in_any_order(tree, [self._event_step(index) for index in events])

    def _apply_decay(self, tree: AbstractValue) -> AbstractValue:
        for path in sorted(self._rules.decay):
            effect = {"op": "dec", "path": path, "value": self._rules.decay[path]}
            place = f"/negativity_budget/decay_per_turn{format_pointer([path])}"
            outcome = self._apply_effects(tree, [effect], {}, place, place)
            tree = join(tree, outcome.tree) if outcome.errors else outcome.tree
        return tree

    def _check_endings(self, tree: AbstractValue) -> AbstractValue | None:
        self._record_states("conditions", tree)
        self._reachable.last = tree
        for section, is_loss in _SECTIONS:
            for index, condition in enumerate(self._rules.losses if is_loss else self._rules.wins):
                place = f"/{section}/{index}/when"
                run = AbstractEvaluation(self._budget)
                true, false = run.split_whole(condition["when"], self._build_data(tree, _NO_MEMBERS))
                works = true is not None or false is not None
                self._reachable.record(place, works=works, fails=run.fails, place=place)
                if true is not None:
                    self._reachable.satisfiable.add(place)
                if not run.fails and false is None:
                    self._reachable.ended_by = place
                    self._reachable.is_certain = is_loss and not any(
                        holding.startswith("/win_conditions") for holding in self._reachable.satisfiable
                    )
                    return None
                tree = tree if run.fails or false is None else _get_part(false, "state")
        return tree

    # --- rules ---

    def _find_satisfying(
        self,
        condition: Any,
        place: str,
        tree: AbstractValue,
        params: AbstractValue,
    ) -> AbstractValue | None:
        """Return the data for which a condition may hold."""
        run = AbstractEvaluation(self._budget)
        true, false = run.split_whole(condition, self._build_data(tree, params))
        self._reachable.record(
            place,
            works=true is not None or false is not None,
            fails=run.fails,
            place=place,
        )
        if true is not None:
            self._reachable.satisfiable.add(place)
        return true

    def _apply_rule(self, data: AbstractValue, rule: dict[str, Any], place: str) -> AbstractValue | None:
        """Return the states after a rule; None if it always fails."""
        fails = 0
        failing = place
        derives: dict[str, AbstractValue] = {}
        for name in sort_derives(rule.get("derives", {})):
            run = AbstractEvaluation(self._budget)
            assert data.object is not None  # noqa: S101 - built by `_data`
            known = AbstractValue(OBJECT, object=AbstractObject(dict(derives), BOTTOM))
            derives[name] = run.evaluate_whole(
                rule["derives"][name],
                replace_member(data.object, "derives", known),
            )
            failing = f"{place}/derives{format_pointer([name])}" if run.fails and not fails else failing
            fails |= run.fails
            if not derives[name].kinds:
                self._reachable.record(place, works=False, fails=fails, place=failing)
                return None
        outcome = self._apply_effects(
            _get_part(data, "state"),
            rule["effects"],
            derives,
            f"{place}/effects",
            "",
        )
        if outcome.failing_index is not None and not fails:
            failing = f"{place}/effects/{outcome.failing_index}"
        works = bool(outcome.tree.kinds)
        self._reachable.record(place, works=works, fails=fails | outcome.errors, place=failing)
        return outcome.tree if works else None

    def _apply_effects(
        self,
        tree: AbstractValue,
        effects: list[Any],
        derives: dict[str, AbstractValue],
        place: str,
        rule: str,
    ) -> EffectsResult:
        """Apply effects and store what they schedule; results are recorded for the rule, if one is given."""
        moment = EffectTime(self._turn, self._rules.turn_minutes)
        outcome = apply_effects(tree, effects, derives, moment, place, self._budget, self._rules.bounds)
        if rule:
            failing = (
                place
                if outcome.failing_index is None or rule == place
                else f"{place}/{outcome.failing_index}"
            )
            self._reachable.record(rule, works=bool(outcome.tree.kinds), fails=outcome.errors, place=failing)
        for due, later in outcome.scheduled:
            if due <= self._horizon:
                entries = self._pending.setdefault(due, {})
                before = entries.get(id(later.effects))
                entries[id(later.effects)] = later if before is None else _join_schedules(before, later)
        return outcome

    # --- steps in unknown order ---

    def _apply_in_any_order(self, tree: AbstractValue, steps: list[_Step]) -> AbstractValue:
        """Return the states after any subset of steps in any order, each at most once."""
        # Every order of n steps is a subsequence of their list repeated n times.
        for step in steps * len(steps):
            tree = join(tree, step(tree))
        return tree

    def _scheduled_step(self, entry: ScheduledEffects) -> _Step:
        def step(tree: AbstractValue) -> AbstractValue:
            effects = f"{entry.place}/effects"
            outcome = self._apply_effects(tree, entry.effects, entry.derives, effects, entry.place)
            return outcome.tree if outcome.tree.kinds else tree

        return step

    def _event_step(self, index: int) -> _Step:
        def step(tree: AbstractValue) -> AbstractValue:
            data = self._build_data(tree, _NO_MEMBERS)
            return self._apply_rule(data, self._rules.events[index], f"/random_events/{index}") or tree

        return step

    def _build_data(self, tree: AbstractValue, params: AbstractValue) -> AbstractValue:
        turn = number_range(float(self._turn), float(self._turn), whole=True)
        return _build_data(tree, params, turn, self._entities)


def _fix_params(values: dict[str, str]) -> dict[str, Any]:
    """Return the declarations of parameters that have one value each."""
    return {name: {"type": "string", "enum": [value]} for name, value in values.items()}


def may_hold(rules: Rules, condition: Any, states: AbstractValue, params: dict[str, Any], turns: int) -> bool:
    """Return True if a condition may hold in some of the states, in one of the first turns."""
    turn = number_range(1.0, float(turns), whole=True)
    data = _build_data(states, get_param_domains(params), turn, from_literal(rules.entities))
    run = AbstractEvaluation(StepBudget(_MAX_STEPS_OF_CONDITION))
    try:
        return run.split_whole(condition, data)[0] is not None
    except BudgetSpentError:
        return True


def _build_data(
    tree: AbstractValue,
    params: AbstractValue,
    turn: AbstractValue,
    entities: AbstractValue,
) -> AbstractValue:
    """Build the data that expressions read."""
    fields = {"state": tree, "params": params, "derives": _NO_MEMBERS, "turn": turn, "entities": entities}
    return AbstractValue(OBJECT, object=AbstractObject(fields, BOTTOM))


def _get_part(data: AbstractValue, name: str) -> AbstractValue:
    """Return a member of the data of an expression."""
    return data.object.fields[name] if data.object is not None else BOTTOM


def _join_schedules(one: ScheduledEffects, other: ScheduledEffects) -> ScheduledEffects:
    """Join two schedules of the same effects."""
    derives = {name: join(value, other.derives[name]) for name, value in one.derives.items()}
    return one._replace(derives=derives)
