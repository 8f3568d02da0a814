"""Both cores over random policies and requests, to the byte: `make fuzz-policies`.

    python -m fuzz.policies --decisions 1000000 --seed 1

A decision is the result of one policy for one request; many requests are unusual for their policy. Cases
depend on the seed alone, so that a run can be repeated.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from fuzz.comparison import DifferenceError, assert_equal, cores, outcome
from fuzz.driver import Fuzzer
from peripety import engine
from peripety.engine._reference.policy_values import EntrySet
from peripety.engine.backend_protocol import EngineError
from peripety.engine.policies.requests import encode_requests
from peripety.engine.policies.types import ToolRequest
from support.engine.policy_generators import (
    SHAPES,
    hostile_requests,
    random_policy,
    random_requests,
    random_text,
)
from support.engine.seeded_specs import random_data, random_logic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.engine.backend_protocol import BackendPolicy


Json = dict[str, Any]

REQUESTS_OF_POLICY = 120
POLICIES_IN_BATCH = 20


def random_case(seed: int, number: int) -> tuple[Json, list[ToolRequest]]:
    """A policy that a core can compile, though it might not pass every check, and requests for its tools."""
    random = Random(f"{seed}:policies:{number}")
    spec = random_policy(random, random.choice([shape for shape in SHAPES if shape != "many"]))
    for rule in (*spec["invariants"], *spec["rules"]):
        _spoil(random, rule["when"])
    third = REQUESTS_OF_POLICY // 3
    requests = random_requests(random, spec, third) + hostile_requests(random, spec, third)
    requests += [_odd(random, request) for request in random_requests(random, spec, third)]
    return spec, requests


def _spoil(random: Random, when: Json) -> None:
    """Let a condition evaluate anything, and compare with texts that are nearly something else."""
    if random.random() < 0.2:
        when["logic"] = {"!!": [random_logic(random)]}
    for matcher in when.get("arguments", ()):
        if random.random() < 0.3:
            texts = [random_text(random) for _ in range(random.choice((3, 20)))]
            matcher["among"] = [text for text in texts if _is_entry(matcher["kind"], text)] or matcher[
                "among"
            ]


def _is_entry(kind: str, text: str) -> bool:
    try:
        EntrySet(kind, [text])
    except EngineError:
        return False
    return not text.startswith("@")


def _odd(random: Random, request: ToolRequest) -> ToolRequest:
    """The request with values in its arguments that are nearly something else."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: changed(part) for key, part in value.items()}
        if isinstance(value, list):
            return [changed(part) for part in value]
        if random.random() < 0.1:
            return random_data(random)
        return random_text(random) if isinstance(value, str) else value

    return ToolRequest(
        request.server_name,
        request.tool_name,
        changed(dict(request.arguments)),
        request.roles,
    )


def compare_policy(seed: int, number: int) -> str | None:
    """Compare the cores over one random policy; what differs, if anything does."""
    spec, requests = random_case(seed, number)
    document = engine.canonicalize(spec)
    others = engine.canonicalize(Random(number).sample(spec["rules"], len(spec["rules"])))
    try:
        policies = {name: core.compile_policy(document) for name, core in cores().items()}
        read = {name: policy.parse_requests(encode_requests(requests)) for name, policy in policies.items()}
        for name, policy in [*policies.items()]:
            if (as_they_are := policy.prepare(requests)) is not None:
                policies[f"{name}, from objects"], read[f"{name}, from objects"] = policy, as_they_are

        def both(what: str, work: Callable[[Any, Any], Any]) -> Any:
            return assert_equal(
                what,
                {name: outcome(partial(work, policies[name], read[name])) for name in policies},
            )

        decided = both("who decides", lambda policy, asked: policy.decide_many(asked))
        for name, policy in policies.items():
            _compare_as_they_are(name, policy, requests, decided)
        for index in range(len(requests)):
            both(f"what request {index} troubles", lambda policy, asked: policy.explain_errors(asked, index))  # noqa: B023
        both("what the rules hold for", lambda policy, asked: policy.match_rules(asked, None))
        both("what other rules hold for", lambda policy, asked: policy.match_rules(asked, others))
    except DifferenceError as error:
        shown = [f"  {name}: {result!r:.2000}" for name, result in error.results.items()]
        return "\n".join([f"policy {number} of seed {seed}: {error.what}", *shown])
    return None


def _compare_as_they_are(
    name: str,
    policy: BackendPolicy,
    requests: Sequence[ToolRequest],
    decided: tuple[bytes, bytes],
) -> None:
    """Compare the decisions on raw requests, if supported, with those on prepared requests."""
    deciding, troubled = memoryview(decided[0]).cast("i"), int.from_bytes(decided[1], "little")
    known = [None if troubled >> number & 1 else rule for number, rule in enumerate(deciding)]
    found = outcome(partial(policy.decide_many_fast, requests))
    if found is None:
        return
    each, left = memoryview(found[0]).cast("i"), int.from_bytes(found[1], "little")
    for number, request in enumerate(requests):
        alone = outcome(partial(policy.decide_one, request))
        among = None if left >> number & 1 else each[number]
        results = {
            "read before": known[number] if alone is not None else None,
            name: alone,
            "among others": among,
        }
        assert_equal(f"who decides request {number} as it is", results)


if __name__ == "__main__":
    Fuzzer(compare_policy, "decisions", REQUESTS_OF_POLICY, POLICIES_IN_BATCH).main(
        __doc__,
        ", ".join(cores()),
    )
