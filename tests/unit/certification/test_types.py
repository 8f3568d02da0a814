"""Certificate document: one canonical form, and every other form is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.certification.types import certificate_hash, decode, encode
from peripety.engine import ActionCall, Proof
from peripety.errors import Finding, InvalidArgumentError, Severity
from support.scenario.batches import certified_alone, contest

if TYPE_CHECKING:
    from peripety.certification.types import Certificate


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """A certificate with something in each of its parts."""
    return replace(
        certified_alone(contest()),
        findings=(Finding("CODE", "/é", 'a "message"', Severity.WARNING),),
        proofs=(Proof("DEAD_ACTION", "/actions/0", "why", witness=(ActionCall("act", {"n": 1.5}),)),),
        planner_gap=-0.25,
        dead_actions=("a",),
        dominant_actions=("b",),
    )


async def test_it_is_read_as_it_was_written(certificate: Certificate) -> None:
    assert decode(encode(certificate)) == certificate
    assert decode(b"\n " + encode(certificate) + b"\n") == certificate


@pytest.mark.parametrize("value", [2.0**60, 1e300, -3, True, "1"])
async def test_a_witness_keeps_its_values(certificate: Certificate, value: Any) -> None:
    claim = Proof("DEAD_ACTION", "/actions/0", "why", witness=(ActionCall("act", {"n": value}),))
    read = decode(encode(replace(certificate, proofs=(claim,))))
    assert read.proofs == (claim,)
    assert isinstance(read.proofs[0].witness[0].params["n"], bool) == isinstance(value, bool)


async def test_it_is_canonical_and_named_by_its_hash(certificate: Certificate) -> None:
    document = encode(certificate)
    assert document == engine.canonicalize(json.loads(document))
    assert certificate_hash(document) == hashlib.sha256(document).hexdigest()


async def test_it_says_nothing_of_who_computed_it_or_when(certificate: Certificate) -> None:
    assert set(json.loads(encode(certificate))) == {
        *("kind", "version", "spec_hash", "engine_version", "rng_version", "options", "band", "verdict"),
        *("findings", "personas", "planner_gap", "drifts", "proofs", "dead_actions", "dominant_actions"),
    }


def without(key: str) -> Any:
    return lambda value: {name: inner for name, inner in value.items() if name != key}


@pytest.mark.parametrize(
    "change",
    [
        without("verdict"),
        without("kind"),
        lambda value: {**value, "note": "a"},
        lambda value: {**value, "version": 2},
        lambda value: {**value, "rng_version": "1"},
        lambda value: {**value, "rng_version": True},
        lambda value: {**value, "planner_gap": "-0.25"},
        lambda value: {**value, "verdict": "fair"},
        lambda value: {**value, "options": {**value["options"], "personas": ["nobody"]}},
        lambda value: {**value, "personas": [{**value["personas"][0], "turns": 1.5}]},
        lambda _: [],
    ],
)
async def test_anything_else_is_refused(certificate: Certificate, change: Any) -> None:
    changed = engine.canonicalize(change(json.loads(encode(certificate))))
    with pytest.raises(InvalidArgumentError) as caught:
        decode(changed)
    assert caught.value.code == "CERTIFICATE_INVALID"


@pytest.mark.parametrize("document", [b"", b"{", b"null", b"\xff", b"[" * 100_000, b'{"kind":1,"kind":2}'])
def test_what_is_no_json_object_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        decode(document)
    assert caught.value.code == "CERTIFICATE_INVALID"


@pytest.mark.parametrize(
    "spelling",
    [b"NaN", b"Infinity", b"1e400", b"-0", b"9" * 5_000, b"[" * 500 + b"]" * 500, b'"\\ud800"'],
)
@pytest.mark.parametrize("field", [b'"planner_gap":-0.25', b'"n":1.5'])
async def test_a_value_that_canonical_form_has_not_is_refused(
    certificate: Certificate,
    field: bytes,
    spelling: bytes,
) -> None:
    name = field.partition(b":")[0]
    changed = encode(certificate).replace(field, name + b":" + spelling)
    assert spelling in changed
    with pytest.raises(InvalidArgumentError) as caught:
        decode(changed)
    assert caught.value.code == "CERTIFICATE_INVALID"


async def test_another_spelling_of_the_same_is_refused(certificate: Certificate) -> None:
    spaced = json.dumps(json.loads(encode(certificate))).encode()
    with pytest.raises(InvalidArgumentError, match="canonical form"):
        decode(spaced)
