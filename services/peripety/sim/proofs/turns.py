"""Reachable states of a scenario, turn by turn, with at most one action a turn.

The set of initial states passes through a turn as one state does. Every choice of the player, every event and
every schedule is joined with the case that it does not happen. A state outside the result occurs in no run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.sim.proofs.budget import Budget, SpentError
from peripety.sim.proofs.declared import depends_on_time, domains, in_order
from peripety.sim.proofs.domain import (
    BOTTOM,
    OBJECT,
    Object,
    Value,
    join,
    literal,
    number,
    replaced_member,
)
from peripety.sim.proofs.effects import Later, Moment, Outcome, apply_effects
from peripety.sim.proofs.evaluation import Evaluation
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from peripety.sim._pure.state import Rules

__all__ = ["Course", "Reach", "course_of", "may_hold"]

_STEPS_OF_ONE = 10_000


@dataclass
class Reach:
    """Possible results of one rule.

    Attributes:
        tried: True if it may be evaluated or applied.
        works: True if it may then succeed.
        fails: possible errors, as bits.
        place: JSON Pointer of the part that failed first.
    """

    tried: bool = False
    works: bool = False
    fails: int = 0
    place: str = ""


@dataclass
class Course:
    """Reachable states and rule results of all runs within a horizon.

    Attributes:
        holding: JSON Pointers of conditions that may hold.
        reaches: possible results of each rule, by the JSON Pointer of its condition or of the scheduling
            effect.
        states: states that actions, events and conditions may meet, by these three words.
        last: states of the last turn, before its end conditions.
        turns: number of analysed turns. Fewer than the horizon means that a fixpoint is reached or every run
            has ended.
        ended_by: JSON Pointer of the condition that ends every remaining run in the last turn.
        certain: True if it is a loss and no run can be won before, so that it ends every run.
    """

    holding: set[str] = field(default_factory=set)
    reaches: dict[str, Reach] = field(default_factory=dict)
    states: dict[str, Value] = field(default_factory=lambda: dict.fromkeys(_STAGES, BOTTOM))
    last: Value = BOTTOM
    turns: int = 0
    ended_by: str | None = None
    certain: bool = False

    def note(self, rule: str, *, works: bool, fails: int, place: str) -> None:
        """Record the possible results of a rule."""
        reach = self.reaches.setdefault(rule, Reach())
        reach.tried = True
        reach.works = reach.works or works
        reach.place = place if fails and not reach.fails else reach.place
        reach.fails |= fails


_Step = Callable[[Value], Value]
_NO_MEMBERS = Value(OBJECT, object=Object({}, BOTTOM))
_STAGES: tuple[str, ...] = ("actions", "events", "conditions")
_SECTIONS = (("loss_conditions", True), ("win_conditions", False))


def course_of(rules: Rules, horizon: int, budget: Budget) -> Course:
    """Compute the reachable states of a scenario within a horizon.

    Raises:
        SpentError: the budget is too small.
    """
    return _Runs(rules, horizon, budget).course()


class _Runs:
    """Abstract simulation of all runs at once."""

    def __init__(self, rules: Rules, horizon: int, budget: Budget) -> None:
        self._rules = rules
        self._horizon = horizon
        self._budget = budget
        self._course = Course()
        self._entities = literal(rules.entities)
        self._params = [domains(action["params"]) for action in rules.actions]
        self._turn = 0
        # Effects that may be due, by turn and place.
        self._pending: dict[int, dict[str, Later]] = {}
        # Last turn in which each event may continue.
        self._lasting: dict[int, int] = {}
        self._is_steady = not depends_on_time(rules)

    def course(self) -> Course:
        tree: Value | None = literal(self._rules.initial)
        before: Any = None
        while tree is not None and self._turn < self._horizon:
            standing = (tree, {event: until - self._turn for event, until in self._lasting.items()})
            if self._is_steady and before == standing:
                break
            before = standing
            self._turn += 1
            tree = self._played(tree)
        self._course.turns = self._turn
        return self._course

    def _played(self, tree: Value) -> Value | None:
        """Return the states of ongoing runs after a turn; None if every run has ended."""
        tree = self._opened(tree)
        tree = self._acted(tree)
        tree = self._happened(tree)
        tree = self._decayed(tree)
        return self._judged(tree)

    def _meets(self, stage: str, tree: Value) -> None:
        self._course.states[stage] = join(self._course.states[stage], tree)

    # --- phases of a turn ---

    def _opened(self, tree: Value) -> Value:
        due = self._pending.pop(self._turn, {})
        return self._in_any_order(tree, [self._later(entry) for entry in due.values()])

    def _acted(self, tree: Value) -> Value:
        self._meets("actions", tree)
        result = tree
        for index, action in enumerate(self._rules.actions):
            place = f"/actions/{index}"
            data = self._holding(action["preconditions"], f"{place}/preconditions", tree, self._params[index])
            if data is not None:
                result = join(result, self._after(data, action, place) or result)
        return result

    def _happened(self, tree: Value) -> Value:
        self._meets("events", tree)
        continuing = [event for event, until in self._lasting.items() if until >= self._turn]
        begun = self._begun(tree)
        fresh = tree
        for index, after in begun.items():
            fresh = fresh if index in continuing else join(fresh, after)
        result = self._continued(fresh, continuing)
        for index in continuing:
            # An event that begins is not already lasting, so it is applied once in the turn either way.
            if index in begun:
                others = [other for other in continuing if other != index]
                result = join(result, self._continued(begun[index], others))
        return result

    def _begun(self, tree: Value) -> dict[int, Value]:
        """Return the states after each event that may begin in this turn."""
        begun = {}
        for index, event in enumerate(self._rules.events):
            place = f"/random_events/{index}"
            data = self._holding(event["when"], f"{place}/when", tree, _NO_MEMBERS)
            after = None if data is None else self._after(data, event, place)
            if after is not None:
                begun[index] = after
                until = self._turn + self._rules.event_turns[index] - 1
                if until > self._turn:
                    self._lasting[index] = until
        return begun

    def _continued(self, tree: Value, events: list[int]) -> Value:
        """Return the states after some of the events that may have begun in earlier turns."""
        return self._in_any_order(tree, [self._again(index) for index in events])

    def _decayed(self, tree: Value) -> Value:
        for path in sorted(self._rules.decay):
            effect = {"op": "dec", "path": path, "value": self._rules.decay[path]}
            place = f"/negativity_budget/decay_per_turn{pointer([path])}"
            outcome = self._applied(tree, [effect], {}, place, place)
            tree = join(tree, outcome.tree) if outcome.fails else outcome.tree
        return tree

    def _judged(self, tree: Value) -> Value | None:
        self._meets("conditions", tree)
        self._course.last = tree
        for section, is_loss in _SECTIONS:
            for index, condition in enumerate(self._rules.losses if is_loss else self._rules.wins):
                place = f"/{section}/{index}/when"
                run = Evaluation(self._budget)
                true, false = run.condition(condition["when"], self._data(tree, _NO_MEMBERS))
                works = true is not None or false is not None
                self._course.note(place, works=works, fails=run.fails, place=place)
                if true is not None:
                    self._course.holding.add(place)
                if not run.fails and false is None:
                    self._course.ended_by = place
                    self._course.certain = is_loss and not any(
                        holding.startswith("/win_conditions") for holding in self._course.holding
                    )
                    return None
                tree = tree if run.fails or false is None else _part(false, "state")
        return tree

    # --- rules ---

    def _holding(self, condition: Any, place: str, tree: Value, params: Value) -> Value | None:
        """Return the data for which a condition may hold."""
        run = Evaluation(self._budget)
        true, false = run.condition(condition, self._data(tree, params))
        self._course.note(place, works=true is not None or false is not None, fails=run.fails, place=place)
        if true is not None:
            self._course.holding.add(place)
        return true

    def _after(self, data: Value, rule: dict[str, Any], place: str) -> Value | None:
        """Return the states after a rule; None if it always fails."""
        fails = 0
        failing = place
        derives: dict[str, Value] = {}
        for name in in_order(rule.get("derives", {})):
            run = Evaluation(self._budget)
            assert data.object is not None  # noqa: S101 - built by `_data`
            known = Value(OBJECT, object=Object(dict(derives), BOTTOM))
            derives[name] = run.result(rule["derives"][name], replaced_member(data.object, "derives", known))
            failing = f"{place}/derives{pointer([name])}" if run.fails and not fails else failing
            fails |= run.fails
            if not derives[name].kinds:
                self._course.note(place, works=False, fails=fails, place=failing)
                return None
        outcome = self._applied(_part(data, "state"), rule["effects"], derives, f"{place}/effects", "")
        if outcome.failing is not None and not fails:
            failing = f"{place}/effects/{outcome.failing}"
        works = bool(outcome.tree.kinds)
        self._course.note(place, works=works, fails=fails | outcome.fails, place=failing)
        return outcome.tree if works else None

    def _applied(
        self, tree: Value, effects: list[Any], derives: dict[str, Value], place: str, rule: str
    ) -> Outcome:
        """Apply effects and store what they schedule; results are recorded for the rule, if one is given."""
        moment = Moment(self._turn, self._rules.turn_minutes)
        outcome = apply_effects(tree, effects, derives, moment, place, self._budget)
        if rule:
            failing = place if outcome.failing is None or rule == place else f"{place}/{outcome.failing}"
            self._course.note(rule, works=bool(outcome.tree.kinds), fails=outcome.fails, place=failing)
        for due, later in outcome.later:
            if due <= self._horizon:
                entries = self._pending.setdefault(due, {})
                before = entries.get(later.place)
                entries[later.place] = later if before is None else _joined(before, later)
        return outcome

    # --- steps in unknown order ---

    def _in_any_order(self, tree: Value, steps: list[_Step]) -> Value:
        """Return the states after any subset of steps in any order, each at most once."""
        # Every order of n steps is a subsequence of their list repeated n times.
        for step in steps * len(steps):
            tree = join(tree, step(tree))
        return tree

    def _later(self, entry: Later) -> _Step:
        def step(tree: Value) -> Value:
            effects = f"{entry.place}/effects"
            outcome = self._applied(tree, entry.effects, entry.derives, effects, entry.place)
            return outcome.tree if outcome.tree.kinds else tree

        return step

    def _again(self, index: int) -> _Step:
        def step(tree: Value) -> Value:
            data = self._data(tree, _NO_MEMBERS)
            return self._after(data, self._rules.events[index], f"/random_events/{index}") or tree

        return step

    def _data(self, tree: Value, params: Value) -> Value:
        turn = number(float(self._turn), float(self._turn), whole=True)
        return _data(tree, params, turn, self._entities)


def may_hold(rules: Rules, condition: Any, states: Value, params: dict[str, Any], turns: int) -> bool:
    """Return True if a condition may hold in some of the states, in one of the first turns."""
    turn = number(1.0, float(turns), whole=True)
    data = _data(states, domains(params), turn, literal(rules.entities))
    run = Evaluation(Budget(_STEPS_OF_ONE))
    try:
        return run.condition(condition, data)[0] is not None
    except SpentError:
        return True


def _data(tree: Value, params: Value, turn: Value, entities: Value) -> Value:
    """Build the data that expressions read."""
    fields = {"state": tree, "params": params, "derives": _NO_MEMBERS, "turn": turn, "entities": entities}
    return Value(OBJECT, object=Object(fields, BOTTOM))


def _part(data: Value, name: str) -> Value:
    """Return a member of the data of an expression."""
    return data.object.fields[name] if data.object is not None else BOTTOM


def _joined(one: Later, other: Later) -> Later:
    """Join two schedules of the same effects."""
    derives = {name: join(value, other.derives[name]) for name, value in one.derives.items()}
    return one._replace(derives=derives)
