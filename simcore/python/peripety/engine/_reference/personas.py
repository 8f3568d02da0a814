"""Personas: strategies that choose actions in a dry-run, by the distance of conditions from holding.

docs/reference/semantics.md defines the distance, 0 … 1.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.effects import CallTrace, build_data, force_event, is_satisfied
from peripety.engine._reference.jsonlogic import Evaluation, evaluate
from peripety.engine._reference.jsonlogic_operators import COMPARISONS, is_truthy
from peripety.engine._reference.state import ReferenceState
from peripety.engine._reference.turn import (
    Choice,
    PersonaDraws,
    act,
    find_ending,
    legal_choices,
    list_trials,
    open_turn,
    sample_params,
    step,
)
from peripety.engine.backend_protocol import EngineError
from peripety.engine.rng import choose, draw, stream_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.engine._reference.state import Rules


Distance = Callable[[dict[str, Any]], float]
"""Distance of a condition, as a function of the data."""

_MAX_GAP = 1e300
_MIN_SCALE = 1e-300
# Minimum distance of a failed comparison, as a part of its scale.
_STEP = 1 / 1024

_NEGATED_COMPARISONS = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
    "===": "!==",
    "!==": "===",
}


def _absolute_difference(a: float, b: float) -> float:
    return max(a - b, b - a)


# Amount by which a comparison of two numbers fails; inequality has no degrees.
_GAPS: dict[str, Callable[[float, float], float]] = {
    "<": lambda a, b: a - b,
    "<=": lambda a, b: a - b,
    ">": lambda a, b: b - a,
    ">=": lambda a, b: b - a,
    "==": _absolute_difference,
    "===": _absolute_difference,
}


def compile_distance(logic: Any, initial: dict[str, Any], *, negated: bool = False) -> Distance:
    """Return the distance function of a condition.

    Args:
        logic: the condition.
        initial: data of the first turn, which determines the scales of comparisons.
        negated: measure the negation of the condition.
    """
    name, operand = _split_operation(logic)
    if name in {"!", "!!"}:
        inner = operand[0] if isinstance(operand, list) else operand
        return compile_distance(inner, initial, negated=negated != (name == "!"))
    if name in {"and", "or"} and isinstance(operand, list):
        parts = [compile_distance(item, initial, negated=negated) for item in operand]
        return _combine_distances(parts, all_of_them=(name == "and") != negated)
    if name in COMPARISONS:
        meant = _NEGATED_COMPARISONS[name] if negated else name
        parts = [_compile_comparison(meant, *pair, initial) for pair in pairwise(operand)]
        return _combine_distances(parts, all_of_them=not negated)
    return partial(_truth_distance, logic, truth=not negated)


def _split_operation(logic: Any) -> tuple[str, Any]:
    """Return the operator and operand of an expression; the operator of a value is ""."""
    return next(iter(logic.items())) if isinstance(logic, dict) and logic else ("", None)


def _combine_distances(parts: list[Distance], *, all_of_them: bool) -> Distance:
    """Combine the distances of several conditions: all must hold, or one."""
    extreme: Callable[[Iterable[float]], float] = max if all_of_them else min
    return parts[0] if len(parts) == 1 else lambda data: extreme(part(data) for part in parts)


def _compile_comparison(name: str, left: Any, right: Any, initial: dict[str, Any]) -> Distance:
    """Return the distance function of a comparison."""
    scale, holds, gap_of = _initial_scale(left, right, initial), COMPARISONS[name], _GAPS.get(name)

    def distance(data: dict[str, Any]) -> float:
        try:
            a, b = evaluate(left, data), evaluate(right, data)
            if holds(Evaluation(), a, b):
                return 0.0
        except EngineError:
            return 1.0
        if gap_of is None or not (isinstance(a, float) and isinstance(b, float)):
            return 1.0
        away = min(gap_of(a, b), _MAX_GAP) + scale * _STEP
        return away / (away + scale)

    return distance


def _initial_scale(left: Any, right: Any, initial: dict[str, Any]) -> float:
    """Return the initial difference of two numbers; 1 if it is zero or not defined."""
    try:
        a, b = evaluate(left, initial), evaluate(right, initial)
    except EngineError:
        return 1.0
    if not (isinstance(a, float) and isinstance(b, float)):
        return 1.0
    apart = min(_absolute_difference(a, b), _MAX_GAP)
    return apart if apart >= _MIN_SCALE else 1.0


def _truth_distance(logic: Any, data: dict[str, Any], *, truth: bool) -> float:
    """Return 0 if an expression has the given truth value, else 1, also if it fails."""
    try:
        return float(is_truthy(evaluate(logic, data)) != truth)
    except EngineError:
        return 1.0


Persona = Callable[[ReferenceState, list[Choice], PersonaDraws], "Iterable[Choice]"]
"""Yields moves of a turn, given its legal choices; the first that the engine accepts is made.

The next one is requested only if the engine has rejected the one before.
"""

_ROLLOUTS = 4
_ROLLOUT_TURNS = 8
_ROLLOUT_KEY = stream_key("rollout")
_END_VALUES = {"lost": -2.0, "errored": -2.0, "won": 2.0}


def get_persona(name: str, rules: Rules, horizon: int) -> Callable[[], Persona] | None:
    """Return a function that returns the persona of a name for a run; None for `idle`, which never moves."""
    if name == "idle":
        return None
    if name == "par":
        return partial(_SolutionPlayer, rules)
    if name == "curious":
        trials = [(action, trial) for action in rules.actions for trial in list_trials(action["params"])]
        return partial(_CuriousPlayer, trials)
    choose_one = _choose_randomly if name == "random" else _best_chooser(name, rules, horizon)

    def persona(state: ReferenceState, choices: list[Choice], draws: PersonaDraws) -> list[Choice]:
        choice = choose_one(state, choices, draws)
        return [] if choice is None else [choice]

    return lambda: persona


def _best_chooser(
    name: str,
    rules: Rules,
    horizon: int,
) -> Callable[[ReferenceState, list[Choice], PersonaDraws], Choice | None]:
    outlook = _StateEvaluator(rules, horizon)
    weigh: Callable[[ReferenceState], float] = {
        "greedy": outlook.evaluate,
        "saboteur": lambda state: -outlook.evaluate(state),
        "cautious": outlook.evaluate_worst_case,
        "planner": outlook.evaluate_rollouts,
    }[name]

    def choose_best(state: ReferenceState, choices: list[Choice], _draws: PersonaDraws) -> Choice | None:
        best, _ = max(_iter_candidates(state, choices), key=lambda candidate: weigh(candidate[1]))
        return best

    return choose_best


class _SolutionPlayer:
    """Persona `par` in one run: it follows one of the solutions whose condition holds when it first acts."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._actions = {action["id"]: action for action in rules.actions}
        self._steps: list[dict[str, Any]] | None = None
        self._next = 0

    def __call__(
        self,
        state: ReferenceState,
        _choices: list[Choice],
        draws: PersonaDraws,
    ) -> Iterator[Choice]:
        if self._steps is None:
            self._steps = self._choose_steps(state, draws)
        for _ in self._steps:
            present = self._next
            step, self._next = self._steps[present], (present + 1) % len(self._steps)
            if _is_for(state, step):
                yield self._to_choice(step)
                otherwise = step.get("otherwise", "wait")
            else:
                otherwise = step.get("otherwise", "skip")
            if otherwise != "skip":
                self._next = present
                if otherwise != "wait":
                    yield self._to_choice(otherwise)
                return

    def _choose_steps(self, state: ReferenceState, draws: PersonaDraws) -> list[dict[str, Any]]:
        fitting = [solution for solution in self._rules.solutions if _is_for(state, solution)]
        steps: list[dict[str, Any]] = (
            fitting[choose(draws.next_draw(), len(fitting))]["steps"] if fitting else []
        )
        return steps

    def _to_choice(self, move: dict[str, Any]) -> Choice:
        return self._actions[move["action"]], move.get("params", {})


def _is_for(state: ReferenceState, part: dict[str, Any]) -> bool:
    """Return True if the condition of a solution or step holds; one that fails does not."""
    try:
        return is_satisfied(state, part.get("when", {}), {}, CallTrace())
    except EngineError:
        return False


class _CuriousPlayer:
    """Persona `curious` in one run: of its trials it makes the least used one that is legal."""

    def __init__(self, trials: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        self._trials = trials
        self._uses = [0] * len(trials)

    def __call__(
        self,
        _state: ReferenceState,
        _choices: list[Choice],
        draws: PersonaDraws,
    ) -> Iterator[Choice]:
        for uses in sorted(set(self._uses)):
            left = [index for index, count in enumerate(self._uses) if count == uses]
            while left:
                index = left.pop(choose(draws.next_draw(), len(left)))
                action, trial = self._trials[index]
                self._uses[index] += 1
                yield action, sample_params(action["params"], draws.next_draw, trial)
                self._uses[index] -= 1


def _choose_randomly(_state: ReferenceState, choices: list[Choice], draws: PersonaDraws) -> Choice | None:
    return choices[choose(draws.next_draw(), len(choices))] if choices else None


def _iter_candidates(
    state: ReferenceState,
    choices: list[Choice],
) -> Iterator[tuple[Choice | None, ReferenceState]]:
    """Yield no action and each accepted choice, with the state after it."""
    opened = open_turn(state, CallTrace())
    yield None, opened
    for action, params in choices:
        after = opened.fork()
        with _end_run_on_error(after):
            if not act(after, action["id"], params)["accepted"]:
                continue
        yield (action, params), after


@contextmanager
def _end_run_on_error(state: ReferenceState) -> Iterator[None]:
    """Mark a run as ended if a call in it fails."""
    try:
        yield
    except EngineError:
        state.status = {"kind": "errored"}


def _is_ongoing(state: ReferenceState) -> bool:
    return bool(state.status["kind"] == "ongoing")


class _StateEvaluator:
    """Evaluation of states by immediate value, worst event, or rollouts; states are not changed."""

    def __init__(self, rules: Rules, horizon: int) -> None:
        initial = build_data(ReferenceState.initial(rules, 0), {}, {})
        self._losses = [compile_distance(condition["when"], initial) for condition in rules.losses]
        self._wins = [compile_distance(condition["when"], initial) for condition in rules.wins]
        self._horizon = horizon

    def evaluate(self, state: ReferenceState) -> float:
        """Return the distance from losing minus the distance from winning; ±2 if the run has ended."""
        if not _is_ongoing(state):
            return _END_VALUES[state.status["kind"]]
        data = build_data(state, {}, {})
        danger = min(distance(data) for distance in self._losses)
        return danger - min((distance(data) for distance in self._wins), default=0.0)

    def evaluate_worst_case(self, state: ReferenceState) -> float:
        """Return the lowest value of a state and of its successors under each eligible event."""
        worst = self.evaluate(state)
        if not _is_ongoing(state):
            return worst
        if state.rules.ends_early:
            try:
                if find_ending(state, CallTrace())["kind"] != "ongoing":
                    return worst
            except EngineError:
                return _END_VALUES["errored"]
        for index in range(len(state.rules.events)):
            after = state.fork()
            with _end_run_on_error(after):
                if not force_event(after, index, CallTrace()):
                    continue
            worst = min(worst, self.evaluate(after))
        return worst

    def evaluate_rollouts(self, state: ReferenceState) -> float:
        """Return the sum of values after random rollouts, with draws independent of the run's own."""
        total = 0.0
        for number in range(_ROLLOUTS):
            total += self._evaluate_rollout(state, draw(state.seed, _ROLLOUT_KEY, state.turn + 1, number))
        return total

    def _evaluate_rollout(self, state: ReferenceState, seed: int) -> float:
        """Return the value after one rollout: higher for a later loss or an earlier win."""
        after = self._roll_out(state, seed)
        turns = after.turn - state.turn
        match after.status["kind"]:
            case "lost":
                return self.evaluate(after) + (turns - 1) / _ROLLOUT_TURNS
            case "won":
                return self.evaluate(after) + (_ROLLOUT_TURNS - turns) / _ROLLOUT_TURNS
        return self.evaluate(after)

    def _roll_out(self, state: ReferenceState, seed: int) -> ReferenceState:
        after, last = state.fork(), min(state.turn + _ROLLOUT_TURNS, self._horizon)
        after.seed = seed
        with _end_run_on_error(after):
            while _is_ongoing(after) and after.turn < last:
                if after.turn > state.turn:
                    _act_randomly(after)
                step(after)
        return after


def _act_randomly(state: ReferenceState) -> None:
    draws = PersonaDraws(state)
    choice = _choose_randomly(state, legal_choices(state, draws, CallTrace()), draws)
    if choice is not None:
        action, params = choice
        act(state, action["id"], params)
