"""Prints the time from saving a specification to new findings and figures; `make bench` shows it."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from peripety.cli.watched_file import WatchedFile, measure_draft
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

QUANTITIES = 12
SAVES = 15


def scenario(number: int) -> bytes:
    """Return a scenario of twelve quantities, most with an action and a loss."""
    spec: dict[str, Any] = json.loads((ROOT / "examples" / "long_way.json").read_bytes())
    for place in range(QUANTITIES - 3):
        path = f"state.q{place}"
        spec["state"][f"q{place}"] = 20 + number
        spec["actions"].append(
            {
                "id": f"raise{place}",
                "name": f"Raise {place}",
                "params": {},
                "preconditions": {},
                "effects": [
                    {"op": "inc", "path": path, "value": 3},
                    {"op": "dec", "path": "state.reserve", "value": 1},
                ],
            }
        )
        spec["negativity_budget"]["decay_per_turn"][path] = 1
        spec["loss_conditions"].append({"id": f"out{place}", "when": {"<=": [{"var": path}, 0]}})
    return json.dumps(spec, indent=2).encode()


async def test_from_save_to_figures(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(scenario(0))
    watched = WatchedFile(str(file))
    assert measure_draft(watched.name).is_playable
    seconds = []
    for number in range(1, SAVES + 1):
        began = time.perf_counter()
        file.write_bytes(scenario(number))
        await asyncio.wait_for(watched.wait(), 5)
        watched.accept()
        report = measure_draft(watched.name)
        seconds.append(time.perf_counter() - began)
        assert report.is_playable
    told = f"{statistics.median(seconds) * 1000:.0f} ms median, {max(seconds) * 1000:.0f} ms at most"
    sys.stdout.write(f"\nfrom save to figures, {QUANTITIES} quantities: {told}\n")
