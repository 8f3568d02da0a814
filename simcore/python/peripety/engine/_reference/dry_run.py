"""Dry-run: simulation of many runs without a model, under one persona, with counts and statistics.

Detailed statistics are the turns of endings, the use of actions, draws of events and moves of numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.effects import CallTrace
from peripety.engine._reference.personas import get_persona
from peripety.engine._reference.state import ReferenceState, Rules, RunEnd
from peripety.engine._reference.turn import PersonaDraws, act, check_ongoing, deal, legal_choices, step
from peripety.engine.backend_protocol import EngineError
from peripety.engine.paths import lookup, parse_path
from peripety.engine.rng import RNG_VERSION, run_seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine._reference.codegen.runner import CompiledRunners
    from peripety.engine._reference.personas import Persona
    from peripety.engine._reference.turn import Choice


_MAX_MOVE = 4096.0
_PARTS_OF_SCALE = 2.0**20


class RunStatistics:
    """Counters of the runs so far.

    Args:
        start: the initial state of the runs.
        watch: paths of numbers to follow, each with the scale of its moves.
    """

    def __init__(self, start: ReferenceState, watch: list[tuple[str, float]]) -> None:
        rules = start.rules
        self._turns: dict[str, Counter[int]] = {"lost": Counter(), "won": Counter()}
        self._actions = {action["id"]: {"legal": 0, "taken": 0} for action in rules.actions}
        self._events = {event["id"]: 0 for event in rules.events}
        self._watched = {text: (parse_path(text), scale) for text, scale in watch}
        self._moves = dict.fromkeys(self._watched, 0)
        self._win_paths: Counter[tuple[str, ...]] = Counter()

    def count_choices(self, choices: list[Choice]) -> None:
        """Count the legal choices of a turn."""
        for action, _ in choices:
            self._actions[action["id"]]["legal"] += 1

    def count_action(self, action_id: str) -> None:
        """Count an accepted action."""
        self._actions[action_id]["taken"] += 1

    def count_event(self, event_id: str | None) -> None:
        """Count the event of a finished turn, if any."""
        if event_id is not None:
            self._events[event_id] += 1

    def count_ending(self, outcome: str, turns: int, first: Any, state: ReferenceState) -> None:
        """Count the end of a run, which began with the tree `first`."""
        if outcome in self._turns:
            self._turns[outcome][turns] += 1
        start, last = {"state": first}, {"state": state.tree_value}
        for text, (path, scale) in self._watched.items():
            self._moves[text] += _measure_move(lookup(start, path), lookup(last, path), scale)

    def count_win_path(self, path: list[str]) -> None:
        """Count the accepted actions of a won run, in their order."""
        self._win_paths[tuple(path)] += 1

    def report(self, *, with_paths: bool) -> dict[str, Any]:
        """Return the JSON of a `RunDetail`."""
        frequent = sorted(self._win_paths.items(), key=lambda item: (-item[1], item[0]))
        return {
            **({"win_paths": frequent} if with_paths else {}),
            "lost_turns": sorted(self._turns["lost"].items()),
            "won_turns": sorted(self._turns["won"].items()),
            "actions": self._actions,
            "events": self._events,
            "moves": self._moves,
        }


def _measure_move(first: Any, last: Any, scale: float) -> int:
    """Return the move of a number in units of its scale.

    It is an integer, so that sums do not depend on order.
    """
    if not (isinstance(first, float) and isinstance(last, float)):
        return 0
    scales = min(max((last - first) / scale, -_MAX_MOVE), _MAX_MOVE)
    return math.floor(scales * _PARTS_OF_SCALE)


def dry_run(rules: Rules, options: dict[str, Any], runners: CompiledRunners | None = None) -> dict[str, Any]:
    """Simulate runs `first_run` … `first_run + runs - 1`, each with a deal of its own.

    Args:
        rules: the scenario.
        options: `{runs, first_run, seed (text), persona, horizon?, digest?, detail?, watch?, paths?}`.
        runners: generated code for faster runs, used unless detail is requested; the report is the same.

    Returns:
        A `DryRunReport`; turns are counted over all runs. Digest and detail are present on request.
    """
    return _simulate(ReferenceState.initial(rules, 0), options, runners, acted=False, deals=True)


def simulate_from(state: ReferenceState, options: dict[str, Any]) -> dict[str, Any]:
    """Simulate runs that continue from a state; turns, including those of the horizon, are counted from it.

    Args:
        state: each run begins with a copy of it, under its own seed. It is not changed.
        options: those of a dry-run, and `acted?`: True if the persona has no action left in the current turn.

    Raises:
        EngineError: `RUN_ENDED`.
    """
    check_ongoing(state)
    return _simulate(state, options, None, acted=bool(options.get("acted")), deals=False)


def _simulate(
    start: ReferenceState,
    options: dict[str, Any],
    runners: CompiledRunners | None,
    *,
    acted: bool,
    deals: bool,
) -> dict[str, Any]:
    """Return the report of runs from a state; players support the initial state only."""
    rules, seed, name = start.rules, int(options["seed"]), options["persona"]
    horizon = int(options.get("horizon", rules.horizon))
    tally = _RunTotals(start, options.get("watch", []))
    persona = get_persona(name, rules, start.turn + horizon)
    interpreter = _Interpreter(start, persona, horizon, tally, acted=acted, deals=deals)
    digest = hashlib.sha256() if options.get("digest") else None
    is_detailed = bool(options.get("detail"))
    first = int(options["first_run"])
    for run in range(first, first + int(options["runs"])):
        own_seed = run_seed(seed, run)
        player = runners.get_runner(name) if runners and not is_detailed else None
        ending = player.play(own_seed, horizon) if player else None
        if ending is None:
            ending = interpreter.play(own_seed)
        tally.add_run(ending)
        if digest is not None:
            digest.update(ending.digest_line())
    return {
        **tally.counts,
        **({} if digest is None else {"digest": digest.hexdigest()}),
        **({"detail": tally.detail.report(with_paths=bool(options.get("paths")))} if is_detailed else {}),
        "losses": tally.losses,
        "wins": tally.wins,
        "errors": list(tally.errors.values()),
        "runs": options["runs"],
        "first_run": options["first_run"],
        "seed": options["seed"],
        "persona": name,
        "horizon": horizon,
        "rng_version": RNG_VERSION,
    }


class _RunTotals:
    """Totals of the runs so far."""

    def __init__(self, start: ReferenceState, watch: list[tuple[str, float]]) -> None:
        rules = start.rules
        self.counts = {"turns": 0, "lost": 0, "won": 0, "survived": 0, "errored": 0}
        self.losses = {condition["id"]: 0 for condition in rules.losses}
        self.wins = {condition["id"]: 0 for condition in rules.wins}
        self.errors: dict[tuple[str, str], dict[str, Any]] = {}
        self.detail = RunStatistics(start, watch)

    def add_run(self, ending: RunEnd) -> None:
        self.counts["turns"] += ending.turns
        self.counts[ending.outcome] += 1
        if ending.condition is not None:
            (self.losses if ending.outcome == "lost" else self.wins)[ending.condition] += 1

    def add_errors(self, errors: list[dict[str, str]]) -> None:
        for error in errors:
            entry = self.errors.setdefault((error["code"], error["rule"]), {**error, "count": 0})
            entry["count"] += 1


class _Interpreter:
    """Simulation of runs from a state with the interpreter, with statistics."""

    def __init__(
        self,
        start: ReferenceState,
        new_persona: Callable[[], Persona] | None,
        horizon: int,
        tally: _RunTotals,
        *,
        acted: bool,
        deals: bool,
    ) -> None:
        self._start = start
        self._new_persona = new_persona
        self._last = start.turn + horizon
        self._tally = tally
        self._acted = acted
        self._deals = deals

    def play(self, seed: int) -> RunEnd:
        """Simulate one run to its end."""
        state, tally, outcome = self._start.fork(), self._tally, "survived"
        state.seed = seed
        if self._deals:
            deal(state)
        first = state.tree_value
        persona = self._new_persona() if self._new_persona else None
        path: list[str] = []
        while state.turn < self._last and outcome == "survived":
            try:
                self._take_action(state, persona, path)
                finished = step(state)
            except EngineError as error:
                tally.add_errors([{"code": error.code, "rule": error.path, "message": error.message}])
                outcome = "errored"
            else:
                tally.add_errors(finished["errors"])
                tally.detail.count_event(finished["event"])
                outcome = "survived" if state.status["kind"] == "ongoing" else str(state.status["kind"])
        turns = state.turn - self._start.turn
        tally.detail.count_ending(outcome, turns, first, state)
        if outcome == "won":
            tally.detail.count_win_path(path)
        return RunEnd(outcome, state.status.get("condition"), turns, state.tree)

    def _take_action(self, state: ReferenceState, persona: Persona | None, path: list[str]) -> None:
        if persona is None or (self._acted and state.turn == self._start.turn):
            return
        draws, record, tally = PersonaDraws(state), CallTrace(), self._tally
        choices = legal_choices(state, draws, record)
        tally.add_errors(record.errors)
        tally.detail.count_choices(choices)
        for action, params in persona(state, choices, draws):
            result = act(state, action["id"], params)
            tally.add_errors(result["errors"])
            if result["accepted"]:
                tally.detail.count_action(action["id"])
                path.append(action["id"])
                return
