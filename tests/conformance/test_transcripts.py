"""The golden transcripts are right on both cores, and recording them again gives the same bytes.

Every tampered variant is refused at its first false line.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.transcripts import FOLDER, GOLDEN, INDEX, record_golden
from peripety import engine
from support.engine.backends import backend_named, program_on
from support.repo.repository import ROOT
from support.session.bundles import verdict_on, verified
from support.session.transcripts import Tampering, entry_of, tamper

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES = json.loads(INDEX.read_text("utf-8"))
NAMES = sorted(ENTRIES)
MOST_TURNS = 200
NEEDED = {
    *(f"op:{op}" for op in ("addlog", "dec", "inc", "mul", "patch", "pop", "push", "schedule", "set")),
    *(f"lowered:{key}" for key in ("clues", "places", "promises", "statements")),
    *(f"spec:{key}" for key in ("bounds", "clues", "deal", "places", "statements")),
    *(f"cause:{cause}" for cause in ("action", "decay", "event", "narrator")),
    *(f"narration:{kind}" for kind in ("narrated", "repaired", "server_resolved")),
    *(f"header:{key}" for key in ("certificate_hash", "next_seed", "table")),
    *(f"event:{kind}" for kind in ("degraded", "dialogue", "narrative_retracted", "rolled", "rule_failed")),
    *("version:1.0", "version:1.1", "status:lost", "status:won", "fork", "rewind", "seed", "rolls"),
    *("narrated", "random event", "lasting event", "rule error", "acting entity", "pov", "memories"),
    *("value:unicode", "value:beyond U+FFFF", "value:keys by code units", "value:exponent", "value:fraction"),
    *("value:beyond 2^53", "value:largest safe integer"),
}


def test_the_index_lists_every_file() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.jsonl")) == NAMES
    assert sorted(f"{chosen.name}.jsonl" for chosen in GOLDEN) == NAMES
    assert len(NAMES) >= 20
    assert max(entry["turns"] for entry in ENTRIES.values()) == MOST_TURNS
    page = (ROOT / "docs" / "reference" / "conformance-kit.md").read_text("utf-8")
    assert f"has {len(NAMES)} sessions of up to {MOST_TURNS} turns" in page


def test_the_sessions_together_use_everything() -> None:
    assert {feature for entry in ENTRIES.values() for feature in entry["features"]} >= NEEDED


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_is_right(name: str) -> None:
    entry, bundle = ENTRIES[name], (FOLDER / name).read_bytes()
    assert hashlib.sha256(bundle).hexdigest() == entry["sha256"]
    turns, verdict = verified(bundle)
    assert verdict.is_valid, verdict.issues
    assert verdict.header is not None
    assert (verdict.turns, verdict.header.chain_hash) == (entry["turns"], entry["chain_hash"])
    assert (turns[-1].computed_state_hash if turns else None) == entry["state_hash"]


@pytest.mark.slow(reason="plays every session on the reference core")
def test_a_transcript_is_right_on_the_reference_core() -> None:
    core = backend_named("python")
    for name in NAMES:
        _, verdict = verified((FOLDER / name).read_bytes(), partial(program_on, core, is_canonical=True))
        assert verdict.is_valid, (name, verdict.issues)


@pytest.mark.slow_after(3, reason="verifies hundreds of bundles")
@pytest.mark.parametrize("name", sorted(NAMES, key=lambda name: ENTRIES[name]["turns"]))
def test_a_tampered_transcript_is_refused_at_its_first_false_line(name: str) -> None:
    bundle = (FOLDER / name).read_bytes()
    for change in (Tampering(**fields) for fields in ENTRIES[name]["tampered"]):
        verdict = verdict_on(tamper(bundle, change))
        assert not verdict.is_valid, change
        assert verdict.issues[0].line == change.first_false_line, (change, verdict.issues)


@pytest.mark.parametrize("name", NAMES)
def test_the_end_of_a_turn_repeats_its_record(name: str) -> None:
    # So a verifier without an engine detects a change of either.
    header, _, *turns = map(engine.parse_canonical, (FOLDER / name).read_bytes().splitlines()[:-1])
    for turn in turns[header["certificate_hash"] is not None :]:
        record, end = turn["record"], turn["events"][-1]
        for key in ("changes", "state_hash", "status"):
            assert end[key] == record[key]


@pytest.mark.slow_after(3, reason="plays every session")
@pytest.mark.parametrize("name", sorted(NAMES, key=lambda name: ENTRIES[name]["turns"]))
async def test_a_session_that_is_recorded_again_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    (chosen,) = (chosen for chosen in GOLDEN if f"{chosen.name}.jsonl" == name)
    transcript = await record_golden(chosen, tmp_path)
    assert transcript.bundle == (FOLDER / name).read_bytes()
    assert json.loads(json.dumps(entry_of(transcript))) == ENTRIES[name]
