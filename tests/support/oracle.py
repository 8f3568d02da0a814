"""Dry-runs played by the interpreter alone, and by the executors that are faster than it."""

from __future__ import annotations

import json
from typing import Any

from peripety.engine import strict_json
from peripety.engine._reference.codegen.runner import CompiledRunner, CompiledRunners
from peripety.engine._reference.dry_run import dry_run
from peripety.engine._reference.state import Rules
from peripety.engine.canonical_json import canonicalize

Report = dict[str, Any]


def _rules(document: Any) -> Rules:
    return Rules(canonicalize(strict_json.parse(json.dumps(document).encode("utf-8"))))


def _options(options: dict[str, Any]) -> dict[str, Any]:
    return {"runs": 4, "first_run": 0, "seed": "7", "persona": "random", "digest": True, **options}


def interpreted_report(document: Any, **options: Any) -> Report:
    """The report of a dry-run in which the slow, obvious interpreter plays every run."""
    return dry_run(_rules(document), _options(options))


def compiled_report(document: Any, **options: Any) -> tuple[Report, int | None]:
    """The report with generated source, and how many runs it left; None when there is no such source."""
    rules, chosen = _rules(document), _options(options)
    players = CompiledRunners(rules)
    player = players.get_runner(chosen["persona"])
    return dry_run(rules, chosen, players), player.abandoned_runs if player else None


def player_of(document: Any, persona: str = "random") -> CompiledRunner | None:
    """The generated player of a scenario."""
    return CompiledRunners(_rules(document)).get_runner(persona)
