"""Both backends for one test suite, and the dry-run executors of the native one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import strict_json
from peripety.engine._backend import load_backend
from peripety.engine._reference.codegen.runner import CompiledRunner, CompiledRunners
from peripety.engine._reference.dry_run import dry_run
from peripety.engine._reference.state import Rules
from peripety.engine.canonical_json import canonicalize
from peripety.engine.documents import build_program
from peripety.engine.lowering import lower

if TYPE_CHECKING:
    from peripety.engine import Program
    from peripety.engine.backend_protocol import Backend


BACKEND_NAMES = ("python", "native")
REQUIRE_NATIVE = os.environ.get("PERIPETY_REQUIRE_NATIVE") == "1"


def backend_named(name: str) -> Backend:
    """The core of a name; skips the test when the native one is not installed and not required."""
    try:
        return load_backend(name)
    except ModuleNotFoundError:
        if REQUIRE_NATIVE:
            raise
        pytest.skip("native core: not built; build it with `make native`")


def program_on(core: Backend, document: bytes, *, is_canonical: bool = False) -> Program:
    """A valid document compiled on one core."""
    canonical = document if is_canonical else core.parse(document)
    return build_program(canonical, core)


def lowered_document(spec: Any) -> bytes:
    """Return what a backend compiles of a valid scenario, in canonical form."""
    return canonicalize(lower(spec).spec)


Report = dict[str, Any]


def _rules(document: Any) -> Rules:
    return Rules(lowered_document(strict_json.parse(json.dumps(document).encode("utf-8"))))


def _options(options: dict[str, Any]) -> dict[str, Any]:
    return {"runs": 4, "first_run": 0, "seed": "7", "persona": "random", "digest": True, **options}


def interpreted_report(document: Any, **options: Any) -> Report:
    """The report of a dry-run in which the slow, obvious interpreter plays every run."""
    return dry_run(_rules(document), _options(options))


def compiled_report(document: Any, **options: Any) -> tuple[Report, int | None]:
    """Return the report with generated source and the number of runs it left; None if no such source
    exists.
    """
    rules, chosen = _rules(document), _options(options)
    players = CompiledRunners(rules)
    player = players.get_runner(chosen["persona"])
    return dry_run(rules, chosen, players), player.abandoned_runs if player else None


def player_of(document: Any, persona: str = "random") -> CompiledRunner | None:
    """The generated player of a scenario."""
    return CompiledRunners(_rules(document)).get_runner(persona)
