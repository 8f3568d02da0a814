"""A short run of what `make fuzz-policies` does, and whether it would find what it looks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fuzz import policies
from fuzz.policies import compare_policy, random_case
from peripety import engine
from peripety.engine._backend import load_backend
from peripety.engine._reference.backend import ReferenceBackend
from peripety.engine._reference.policy import ReferencePolicy
from peripety.engine.policies.requests import encode_requests


@pytest.mark.slow(reason="decides with many random policies")
def test_both_cores_decide_the_same_by_random_policies() -> None:
    assert [told for number in range(15) if (told := compare_policy(7, number)) is not None] == []


def test_random_cases_reach_rules_and_every_trouble() -> None:
    deciding, codes = set(), set()
    for number in range(20):
        spec, requests = random_case(3, number)
        policy = load_backend("python").compile_policy(engine.canonicalize(spec))
        read = policy.parse_requests(encode_requests(requests))
        found = memoryview(policy.decide_many(read)[0]).cast("i")
        deciding |= {min(rule, 0) for rule in found}
        for index in range(len(requests)):
            codes |= {error["code"] for error in json.loads(policy.explain_errors(read, index))}
    assert deciding == {-2, -1, 0}
    assert codes >= {"BAD_DOMAIN", "BAD_EMAIL", "BAD_PATH", "BAD_VALUE", "NOT_A_NUMBER", "UNKNOWN_OPERATOR"}


def test_a_core_that_decides_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class WrongPolicy(ReferencePolicy):
        def explain_errors(self, requests: Any, index: int) -> bytes:
            return super().explain_errors(requests, index).replace(b"BAD_PATH", b"BAD_VALUE")

    class WrongCore(ReferenceBackend):
        def compile_policy(self, document: bytes) -> ReferencePolicy:
            return WrongPolicy(document)

    pair = {"python": load_backend("python"), "native": WrongCore()}
    monkeypatch.setattr(policies, "cores", lambda: pair)
    told = [told for number in range(5) if (told := compare_policy(1, number)) is not None]
    assert told
    assert "BAD_PATH" in told[0]
