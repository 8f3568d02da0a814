"""Simulation of many runs without a model, under one persona."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.detail import Detail
from peripety.sim._pure.effects import Record
from peripety.sim._pure.endings import Ending
from peripety.sim._pure.personas import persona_of
from peripety.sim._pure.rng import RNG_VERSION, run_seed
from peripety.sim._pure.state import Rules, State
from peripety.sim._pure.turn import PolicyDraws, act, check_ongoing, legal_choices, step

if TYPE_CHECKING:
    from peripety.sim._pure.compiled import Players
    from peripety.sim._pure.personas import Persona

__all__ = ["dry_run", "futures"]


def dry_run(rules: Rules, options: dict[str, Any], players: Players | None = None) -> dict[str, Any]:
    """Simulate runs `first_run` … `first_run + runs - 1`.

    Args:
        rules: the scenario.
        options: `{runs, first_run, seed (text), persona, horizon?, digest?, detail?, watch?}`.
        players: generated code for faster runs, used unless detail is requested; the report is the same.

    Returns:
        A `DryRunReport`; turns are counted over all runs. Digest and detail are present on request.
    """
    return _played(State.initial(rules, 0), options, players, acted=False)


def futures(state: State, options: dict[str, Any]) -> dict[str, Any]:
    """Simulate runs that continue from a state; turns, including those of the horizon, are counted from it.

    Args:
        state: each run begins with a copy of it, under its own seed. It is not changed.
        options: those of a dry-run, and `acted?`: True if the persona has no action left in the current turn.

    Raises:
        CoreError: `RUN_ENDED`.
    """
    check_ongoing(state)
    return _played(state, options, None, acted=bool(options.get("acted")))


def _played(start: State, options: dict[str, Any], players: Players | None, *, acted: bool) -> dict[str, Any]:
    """Return the report of runs from a state; players support the initial state only."""
    rules, seed, name = start.rules, int(options["seed"]), options["persona"]
    horizon = int(options.get("horizon", rules.horizon))
    tally = _Tally(start, options.get("watch", []))
    persona = persona_of(name, rules, start.turn + horizon)
    interpreter = _Interpreter(start, persona, horizon, tally, acted=acted)
    digest = hashlib.sha256() if options.get("digest") else None
    is_detailed = bool(options.get("detail"))
    first = int(options["first_run"])
    for run in range(first, first + int(options["runs"])):
        own_seed = run_seed(seed, run)
        player = players.under(name) if players and not is_detailed else None
        ending = player.play(own_seed, horizon) if player else None
        if ending is None:
            ending = interpreter.play(own_seed)
        tally.count(ending)
        if digest is not None:
            digest.update(ending.digest_line())
    return {
        **tally.counts,
        **({} if digest is None else {"digest": digest.hexdigest()}),
        **({"detail": tally.detail.report()} if is_detailed else {}),
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


class _Tally:
    """Totals of the runs so far."""

    def __init__(self, start: State, watch: list[tuple[str, float]]) -> None:
        rules = start.rules
        self.counts = {"turns": 0, "lost": 0, "won": 0, "survived": 0, "errored": 0}
        self.losses = {condition["id"]: 0 for condition in rules.losses}
        self.wins = {condition["id"]: 0 for condition in rules.wins}
        self.errors: dict[tuple[str, str], dict[str, Any]] = {}
        self.detail = Detail(start, watch)

    def count(self, ending: Ending) -> None:
        self.counts["turns"] += ending.turns
        self.counts[ending.outcome] += 1
        if ending.condition is not None:
            (self.losses if ending.outcome == "lost" else self.wins)[ending.condition] += 1

    def note(self, errors: list[dict[str, str]]) -> None:
        for error in errors:
            entry = self.errors.setdefault((error["code"], error["rule"]), {**error, "count": 0})
            entry["count"] += 1


class _Interpreter:
    """Simulation of runs from a state with the interpreter, with statistics."""

    def __init__(
        self, start: State, persona: Persona | None, horizon: int, tally: _Tally, *, acted: bool
    ) -> None:
        self._start = start
        self._persona = persona
        self._last = start.turn + horizon
        self._tally = tally
        self._acted = acted

    def play(self, seed: int) -> Ending:
        """Simulate one run to its end."""
        state, tally, outcome = self._start.fork(), self._tally, "survived"
        state.seed = seed
        while state.turn < self._last and outcome == "survived":
            try:
                self._take_action(state)
                finished = step(state)
            except CoreError as error:
                tally.note([{"code": error.code, "rule": error.path, "message": error.message}])
                outcome = "errored"
            else:
                tally.note(finished["errors"])
                tally.detail.drew(finished["event"])
                outcome = "survived" if state.status["kind"] == "ongoing" else str(state.status["kind"])
        turns = state.turn - self._start.turn
        tally.detail.ended(outcome, turns, state)
        return Ending(outcome, state.status.get("condition"), turns, state.tree)

    def _take_action(self, state: State) -> None:
        if self._persona is None or (self._acted and state.turn == self._start.turn):
            return
        draws, record, tally = PolicyDraws(state), Record(), self._tally
        choices = legal_choices(state, draws, record)
        tally.note(record.errors)
        tally.detail.chose_among(choices)
        choice = self._persona(state, choices, draws)
        if choice is not None:
            action, params = choice
            result = act(state, action["id"], params)
            tally.note(result["errors"])
            if result["accepted"]:
                tally.detail.took(action["id"])
