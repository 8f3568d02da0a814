"""The verifier of the Python client accepts the golden transcripts, and names the first false line."""

from __future__ import annotations

import json

import pytest

from conformance.transcripts import FOLDER, INDEX
from peripety.client import Transcript, TranscriptError, verify_transcript
from support.session.transcripts import Tampering, tamper

ENTRIES = json.loads(INDEX.read_text("utf-8"))
NAMES = sorted(ENTRIES, key=lambda name: ENTRIES[name]["turns"])


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_transcript_is_verified(name: str) -> None:
    entry = ENTRIES[name]
    expected = Transcript(entry["turns"], entry["chain_hash"], entry["state_hash"])
    assert verify_transcript(FOLDER / name, chain_hash=entry["chain_hash"]) == expected


def test_another_chain_hash_than_the_trusted_one_is_refused() -> None:
    with pytest.raises(TranscriptError) as caught:
        verify_transcript(FOLDER / NAMES[-1], chain_hash="0" * 64)
    assert (caught.value.line, caught.value.turn) == (1, None)


@pytest.mark.slow_after(5, reason="verifies hundreds of bundles")
@pytest.mark.parametrize("name", NAMES)
def test_every_tampered_transcript_is_refused_at_its_first_false_line(name: str) -> None:
    bundle = (FOLDER / name).read_bytes()
    for fields in ENTRIES[name]["tampered"]:
        lines = tamper(bundle, Tampering(**fields)).splitlines(keepends=True)
        with pytest.raises(TranscriptError) as caught:
            verify_transcript(lines)
        named = (caught.value.line, caught.value.turn)
        assert named == (fields["first_false_line"], fields.get("first_false_turn")), fields


@pytest.mark.parametrize("lines", [[], [b"\n"], [b"{}\n"], [b"[" * 100_000], [b"\xff\n"], [b'{"a":NaN}\n']])
def test_a_file_that_is_not_a_bundle_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(TranscriptError, match="line 1"):
        verify_transcript(lines)
