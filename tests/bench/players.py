"""Who plays the dry-runs of the benchmarks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.sim import canonical
from peripety.sim._pure.dry_run import dry_run
from peripety.sim._pure.state import Rules
from support.cores import core_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim import Persona

__all__ = ["native", "players"]


def players(document: bytes, persona: Persona = "random") -> dict[str, Callable[[int], int]]:
    """By name, who plays so many runs of a scenario on one thread and says how many turns those took.

    `naive` interprets the rules as they stand in the document, `compiled` is the core in Python as it is
    used, and `native` the core in Rust.
    """
    rules = Rules(core_named("python").parse(document))
    return {
        "naive": lambda runs: int(dry_run(rules, _options(runs, persona=persona))["turns"]),
        "compiled": _player("python", document, persona=persona),
        "native": _player("native", document, persona=persona, threads=1),
    }


def native(document: bytes, threads: int) -> Callable[[int], int]:
    """The core in Rust on so many threads."""
    return _player("native", document, threads=threads)


def _player(name: str, document: bytes, **more: Any) -> Callable[[int], int]:
    core = core_named(name)
    program = core.compile(core.parse(document))

    def play(runs: int) -> int:
        report: dict[str, Any] = json.loads(program.dry_run(canonical(_options(runs, **more))))
        return int(report["turns"])

    return play


def _options(runs: int, **more: Any) -> dict[str, Any]:
    return {"runs": runs, "first_run": 0, "seed": "1", "persona": "random", **more}
