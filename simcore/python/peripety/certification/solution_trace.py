"""Trace of the solutions of a document: their illegal steps, what ends the runs, and moves that are guesses.

The rates of the persona `par` do not show where a solution goes wrong. Here its moves are made one by one, so
that each rejected step and each loss has a turn. The result names steps and conditions: it is for the author
alone.

A solution may follow what was dealt. Its wins show that a reader can win only if the player can know the
truth by then: two games that have looked the same so far have to get the same move, whatever is hidden in
them. So games are compared that differ in one deal only, with the same chance.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice, product
from random import Random
from statistics import median_low
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.certification.simulation import replace_deal
from peripety.engine.lowering import lower
from peripety.engine.rng import run_seed
from peripety.engine.rule_text import describe_expression
from peripety.errors import Finding, PeripetyError, Severity

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from peripety.engine import DryRunReport, Program, State

RUNS = 64
"""The number of traced runs."""

_COMPARED_RUNS = 3
"""The number of dealt games that are compared with others."""

_MAX_COMPARED = 6
"""The number of games that each of them is compared with."""

_MAX_TOLD = 2

_SLIPS = 2
"""The number of moves beside the solution that a run is played with."""

# A step that is seldom illegal is not what goes wrong.
_OFTEN = RUNS // 8


def trace_solutions(program: Program, report: DryRunReport) -> str:
    """Play the solutions, and return a line about their illegal steps and about the ends of lost runs.

    Of several solutions for one hidden truth each is played in turn.

    Args:
        program: a scenario with solutions.
        report: runs of the persona `par`; the first of them are traced.
    """
    solutions = lower(program.spec).spec["solutions"]
    illegal: dict[str, list[int]] = {}
    lost: dict[str, list[int]] = {}
    tries = _Tries(program)
    for number in range(RUNS):
        state = program.new_state(run_seed(report.seed, report.first_run + number))
        fitting = [solution for solution in solutions if _is_for(program, state, solution)]
        steps = fitting[number % len(fitting)]["steps"] if fitting else []
        trace = _Trace(program, state, steps, tries)
        trace.play(report.horizon)
        for step, turn in trace.illegal.items():
            illegal.setdefault(step, []).append(turn)
        if state.status.kind == "lost":
            lost.setdefault(f"'{state.status.condition}' before {trace.next_step}", []).append(state.turn)
    told = [*islice(tries.describe_vain(), _MAX_TOLD)]
    told += [*_describe(illegal, "a turn is lost at {}, which is not legal,"), *_describe(lost, "lost by {}")]
    return f"steps in {RUNS} runs: {'; '.join(told)}" if told else ""


def measure_slips(program: Program, report: DryRunReport) -> str:
    """Play the solutions with two other moves at random turns, and return a line about the wins.

    A player who reads errs, too. If two errors lose what the solutions win, only a player who knows the steps
    can win.

    Args:
        program: a scenario with solutions.
        report: runs of any persona; the seed, the horizon and the chance of the first of them are used.

    Returns:
        The line; empty if the solutions win no run, or win before two moves can be added.
    """
    seed, first, horizon = report.seed, report.first_run, report.horizon
    par = program.dry_run(
        runs=RUNS, first_run=first, seed=seed, horizon=horizon, persona="par", threads=1, detail=True
    )
    turns = par.detail.won_turns if par.detail else {}
    turn = median_low([turn for turn, count in turns.items() for _ in range(count)] or [0])
    if turn <= _SLIPS:
        return ""
    solutions, others = lower(program.spec).spec["solutions"], [*_list_moves(program.spec)]
    won = 0
    for number in range(first, first + RUNS):
        state = program.new_state(run_seed(seed, number))
        fitting = [solution for solution in solutions if _is_for(program, state, solution)]
        steps = fitting[number % len(fitting)]["steps"] if fitting else []
        draws = Random(run_seed(seed, number))  # noqa: S311 - the same moves every time
        slips = draws.sample(range(1, turn), _SLIPS)
        trace = _Trace(program, state, steps, _Tries(program))
        trace.play(horizon, slips, draws.sample(others, len(others)))
        won += state.status.kind == "won"
    return (
        f"par with {_SLIPS} other moves: wins {won / RUNS:.1%} of {RUNS} runs,"
        f" without them {par.won / RUNS:.1%} (no band); they are legal moves at random,"
        f" each in a turn before {turn}"
    )


def _list_moves(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each action with each value of its texts and booleans, and the least of its numbers."""
    for action in spec["actions"]:
        values = [
            param.get("enum") or ([False, True] if param["type"] == "boolean" else [param.get("minimum", "")])
            for param in action["params"].values()
        ]
        for chosen in product(*values):
            yield {"action": action["id"], "params": dict(zip(action["params"], chosen, strict=True))}


def find_guesses(program: Program, report: DryRunReport) -> Finding | None:
    """Return a warning if the solutions use what was dealt before the player can know it.

    Args:
        program: a scenario with solutions.
        report: runs of the persona `par`; the deals and the chance are those of its first ones.

    Returns:
        None without such a move, without a deal, and for a document that hides paths by `visibility`.
    """
    if "deal" not in program.spec or "visibility" in program.spec:
        return None
    solutions = lower(program.spec).spec["solutions"]
    guesses: Counter[tuple[str, str]] = Counter()
    turns: dict[tuple[str, str], list[int]] = {}
    for number in range(_COMPARED_RUNS):
        start = program.new_state(run_seed(report.seed, report.first_run + number))
        games = [
            _play_in_view(program, state, solutions, number, report.horizon)
            for state in _vary_deals(program, start)
        ]
        first = _find_guess(games[0], games[1:])
        if first is not None:
            guesses[first[1:]] += 1
            turns.setdefault(first[1:], []).append(first[0])
    if not guesses:
        return None
    ((taken, other), _), *_ = guesses.most_common(1)
    message = (
        f"in {guesses.total()} of {_COMPARED_RUNS} games a move of the solutions is a guess: in turn"
        f" {min(turns[taken, other])} it is {taken}, and {other} in a game that has looked the same to the"
        " player so far and hides another truth"
    )
    return Finding("SOLUTION_GUESSES", "/solutions", message, Severity.WARNING)


def _vary_deals(program: Program, start: State) -> Iterator[State]:
    """Yield a dealt state, and states that differ from it in the value of one deal."""
    snapshot, tree = start.to_json(), {"state": start.tree()}
    changes = [
        (deal["path"], value)
        for deal in program.spec["deal"]
        for value in deal["values"]
        if value != engine.evaluate({"var": deal["path"]}, tree)
    ]
    yield start
    step = max(1, len(changes) // _MAX_COMPARED)
    for change in changes[::step][:_MAX_COMPARED]:
        yield program.load_state(replace_deal(snapshot, [change]))


def _play_in_view(
    program: Program,
    state: State,
    solutions: Sequence[dict[str, Any]],
    number: int,
    horizon: int,
) -> list[tuple[bytes, str]]:
    """Play a game; return for each turn what the player sees before it, and the move."""
    fitting = [solution for solution in solutions if _is_for(program, state, solution)]
    steps = fitting[number % len(fitting)]["steps"] if fitting else []
    trace = _Trace(program, state, steps, _Tries(program))
    shown: list[tuple[bytes, str]] = []
    while state.status.kind == "ongoing" and state.turn < horizon:
        before = _show(program, state)
        shown.append((before, trace.move()))
        program.step(state)
    return shown


def _show(program: Program, state: State) -> bytes:
    """Return the state without what is hidden from the player."""
    playable = {entity["id"] for entity in program.spec.get("entities", []) if entity.get("playable")}
    tree = {key: value for key, value in state.tree().items() if key != "hidden"}
    private = tree.pop("private", None) or {}
    return engine.canonicalize([tree, {key: value for key, value in private.items() if key in playable}])


def _find_guess(
    game: Sequence[tuple[bytes, str]], others: Sequence[Sequence[tuple[bytes, str]]]
) -> tuple[int, str, str] | None:
    """Return the first turn with another move in a game that looks the same, and both moves."""
    found: list[tuple[int, str, str]] = []
    for other in others:
        for turn, ((seen, move), (also_seen, also_moved)) in enumerate(
            zip(game, other, strict=False), start=1
        ):
            if seen != also_seen:
                break
            if move != also_moved:
                found.append((turn, move, also_moved))
                break
    return min(found, default=None)


def _describe(found: dict[str, list[int]], text: str) -> Iterator[str]:
    for what, count in Counter({what: len(turns) for what, turns in found.items()}).most_common(_MAX_TOLD):
        if count >= _OFTEN:
            yield f"{text.format(what)} in {count}, at the median in turn {median_low(found[what])}"


def _is_for(program: Program, state: State, part: dict[str, Any]) -> bool:
    """Return True if the condition of a solution or of a step holds."""
    data = _read_data(state, program.spec.get("entities", []), {})
    try:
        return not part.get("when") or bool(engine.evaluate({"!!": [part["when"]]}, data))
    except PeripetyError:
        return False


def _read_data(state: State, entities: Sequence[Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a condition."""
    turn = state.turn + 1
    return {"state": state.tree(), "params": params, "derives": {}, "turn": turn, "entities": entities}


class _Tries:
    """The moves of all runs by action, and the conditions that failed.

    Args:
        program: the scenario.
    """

    def __init__(self, program: Program) -> None:
        self._entities = program.spec.get("entities", [])
        self._conditions = {
            action["id"]: action["preconditions"] for action in lower(program.spec).spec["actions"]
        }
        self._accepted: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._failed: dict[str, Counter[str]] = {}

    def add(self, move: dict[str, Any], state: State, *, is_accepted: bool) -> None:
        """Count a move in a state, before which it was made or rejected."""
        name = move["action"]
        (self._accepted if is_accepted else self._rejected)[name] += 1
        if not is_accepted:
            failed = self._failed.setdefault(name, Counter())
            failed.update(self._find_failed(self._conditions[name], move.get("params", {}), state))

    def _find_failed(self, condition: Any, params: dict[str, Any], state: State) -> Iterator[str]:
        parts = (
            condition["and"] if isinstance(condition, dict) and condition.keys() == {"and"} else [condition]
        )
        data = _read_data(state, self._entities, params)
        for part in parts:
            logic = _place_params(part, params)
            try:
                if not engine.evaluate({"!!": [logic]}, data):
                    yield describe_expression(logic)
            except PeripetyError:
                continue

    def describe_vain(self) -> Iterator[str]:
        """Yield a clause about each action that was never legal, the most often tried first."""
        for name, count in self._rejected.most_common():
            if not self._accepted[name] and self._failed[name]:
                ((what, failures),) = self._failed[name].most_common(1)
                yield f"'{name}' is never legal in {count} tries, in {failures} for lack of {what}"


def _place_params(logic: Any, params: dict[str, Any]) -> Any:
    """Return a condition in which the parameters in paths are replaced by their values."""
    if isinstance(logic, list):
        return [_place_params(item, params) for item in logic]
    if isinstance(logic, dict):
        return {operator: _place_params(operand, params) for operator, operand in logic.items()}
    if isinstance(logic, str):
        for name, value in params.items():
            logic = logic.replace(f"[params.{name}]", f".{value}")
    return logic


class _Trace:
    """The moves of one run, in the order of the persona `par`.

    Args:
        program: the scenario.
        state: the state, which the moves change.
        steps: the steps of the solution.
        tries: receives the moves.

    Attributes:
        illegal: the steps that cost a turn because they and their replacement were not legal, each with the
            first such turn.
    """

    def __init__(
        self,
        program: Program,
        state: State,
        steps: Sequence[dict[str, Any]],
        tries: _Tries,
    ) -> None:
        self._program = program
        self._tries = tries
        self._state = state
        self._steps = steps
        self._next = 0
        self.illegal: dict[str, int] = {}

    @property
    def next_step(self) -> str:
        """Return the name of the step that comes next."""
        return self._name(self._next) if self._steps else "any step"

    def play(
        self,
        horizon: int,
        slips: Container[int] = (),
        others: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Play a run to its end.

        Args:
            horizon: the last turn.
            slips: turns, from 1, in which another move is made.
            others: these moves; the first legal one is made.
        """
        while self._state.status.kind == "ongoing" and self._state.turn < horizon:
            if self._state.turn + 1 in slips:
                any(map(self._act, others))
            else:
                self.move()
            self._program.step(self._state)

    def move(self) -> str:
        """Make the next move of the solution, and return its text; `wait` if it makes none."""
        for _ in self._steps:
            step, following = self._steps[self._next], (self._next + 1) % len(self._steps)
            is_due = _is_for(self._program, self._state, step)
            if is_due and self._act(step):
                self._next = following
                return _describe_move(step)
            otherwise = step.get("otherwise", "wait" if is_due else "skip")
            if otherwise != "skip":
                if otherwise != "wait" and self._act(otherwise):
                    return _describe_move(otherwise)
                self.illegal.setdefault(self._name(self._next), self._state.turn + 1)
                return "wait"
            self._next = following
        return "wait"

    def _act(self, move: dict[str, Any]) -> bool:
        before = self._state.fork()
        is_accepted = self._program.act(self._state, move["action"], move.get("params", {})).accepted
        self._tries.add(move, before, is_accepted=is_accepted)
        return is_accepted

    def _name(self, index: int) -> str:
        return f"step {index + 1} '{self._steps[index]['action']}'"


def _describe_move(move: dict[str, Any]) -> str:
    """Return an action with its parameters."""
    params = ", ".join(f"{name}: {value}" for name, value in move.get("params", {}).items())
    return f"'{move['action']}'{f' ({params})' if params else ''}"
