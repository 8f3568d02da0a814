"""Players of the dry-runs and the futures of the benchmarks."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

from peripety.engine import canonicalize
from peripety.engine._reference.dry_run import dry_run
from peripety.engine._reference.state import Rules
from support.engine.backends import backend_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine import Persona
    from peripety.engine.backend_protocol import BackendProgram, BackendState


FUTURES = 10_000
"""Number of futures requested at a time."""
_PAST, _HORIZON = 20, 30


def players(document: bytes, persona: Persona = "random") -> dict[str, Callable[[int], int]]:
    """Return, by name, functions that play runs of a scenario on one thread and return the number of turns.

    `naive` interprets the rules of the document directly, `compiled` is the core in Python as it is used, and
    `native` the core in Rust.
    """
    rules = Rules(backend_named("python").parse(document))
    return {
        "naive": lambda runs: int(dry_run(rules, _options(runs, persona=persona))["turns"]),
        "compiled": _player("python", document, persona=persona),
        "native": _player("native", document, persona=persona, threads=1),
    }


def native(document: bytes, threads: int) -> Callable[[int], int]:
    """The core in Rust on so many threads."""
    return _player("native", document, threads=threads)


def futures(document: bytes) -> dict[str, Callable[[int], int]]:
    """By name, who plays so many futures of a state of turn 20 and gives their number back.

    `python` and `interpreter` play rule by rule in either core, `native` is the core in Rust as it is used on
    one thread, and `two` the same on two.
    """
    core = backend_named("python")
    reference = core.compile(core.parse(document))
    present = _present(reference)
    core = backend_named("native")
    same: Any = core.compile(core.parse(document)).load_state(present.to_json())
    ways: dict[str, Callable[[bytes], bytes]] = {
        "python": lambda options: reference.simulate_from(present, options),
        "interpreter": lambda options: bytes(same.native.simulate_from_with("interpreter", options)),
        "native": lambda options: bytes(same.native.simulate_from(options)),
    }
    sides = {name: _futures_player(play, threads=1) for name, play in ways.items()}
    return {**sides, "two": _futures_player(ways["native"], threads=2)}


def _futures_player(play: Callable[[bytes], bytes], **more: Any) -> Callable[[int], int]:
    def play_all(runs: int) -> int:
        for first in range(0, runs, FUTURES):
            some = {"runs": min(FUTURES, runs - first), "first_run": first, "horizon": _HORIZON}
            play(canonicalize(_options(**some, **more)))
        return runs

    return play_all


def _present(program: BackendProgram) -> BackendState:
    """A state in which so many turns are complete, of the first seed under which a run lasts so long."""
    seeds = count()
    while True:
        state = program.new_state(next(seeds))
        while state.completed_turns() < _PAST and b"ongoing" in state.status_json():
            legal = json.loads(program.legal_actions(state))
            if legal:
                program.act(state, legal[state.completed_turns() % len(legal)], b"{}")
            program.step(state)
        if b"ongoing" in state.status_json():
            return state


def _player(name: str, document: bytes, **more: Any) -> Callable[[int], int]:
    core = backend_named(name)
    program = core.compile(core.parse(document))

    def play(runs: int) -> int:
        report: dict[str, Any] = json.loads(program.dry_run(canonicalize(_options(runs, **more))))
        return int(report["turns"])

    return play


def _options(runs: int, **more: Any) -> dict[str, Any]:
    return {"runs": runs, "first_run": 0, "seed": "1", "persona": "random", **more}
