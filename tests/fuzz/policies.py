"""Both cores over random policies and requests, to the byte: `make fuzz-policies`.

    python -m fuzz.policies --decisions 1000000 --seed 1

A decision is what one policy says to one request, many of which are not what the policy expects. Cases depend
on the seed alone, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from fuzz.comparison import DifferenceError, assert_equal, cores, outcome
from peripety import sim
from peripety.sim._core import CoreError
from peripety.sim._pure.policies.entries import Entries
from peripety.sim.policies.requests import encoded
from peripety.sim.policies.types import ToolRequest
from support.random_logic import random_data, random_logic
from support.random_policies import SHAPES, random_policy
from support.random_requests import hostile_requests, random_requests
from support.random_texts import random_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["compare_policy", "differences", "random_case"]

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
        Entries(kind, [text])
    except CoreError:
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
        request.server_name, request.tool_name, changed(dict(request.arguments)), request.roles
    )


def compare_policy(seed: int, number: int) -> str | None:
    """Compare the cores over one random policy; what differs, if anything does."""
    spec, requests = random_case(seed, number)
    document = sim.canonical(spec)
    others = sim.canonical(Random(number).sample(spec["rules"], len(spec["rules"])))
    try:
        policies = {name: core.policy(document) for name, core in cores().items()}
        read = {name: policy.requests(encoded(requests)) for name, policy in policies.items()}
        for name, policy in [*policies.items()]:
            if (as_they_are := policy.read(requests)) is not None:
                policies[f"{name}, from objects"], read[f"{name}, from objects"] = policy, as_they_are

        def both(what: str, work: Callable[[Any, Any], Any]) -> Any:
            return assert_equal(
                what, {name: outcome(partial(work, policies[name], read[name])) for name in policies}
            )

        both("who decides", lambda policy, asked: policy.deciding(asked))
        for index in range(len(requests)):
            both(f"what request {index} troubles", lambda policy, asked: policy.unevaluated(asked, index))  # noqa: B023
        both("what the rules hold for", lambda policy, asked: policy.matches(asked, None))
        both("what other rules hold for", lambda policy, asked: policy.matches(asked, others))
    except DifferenceError as error:
        shown = [f"  {name}: {result!r:.2000}" for name, result in error.results.items()]
        return "\n".join([f"policy {number} of seed {seed}: {error.what}", *shown])
    return None


def _batch(seed: int, batch: int) -> list[str]:
    numbers = range(batch * POLICIES_IN_BATCH, (batch + 1) * POLICIES_IN_BATCH)
    return [told for number in numbers if (told := compare_policy(seed, number)) is not None]


def differences(decisions: int, seed: int, workers: int) -> Iterator[str]:
    """What differs, over at least so many decisions."""
    batches = -(-decisions // (REQUESTS_OF_POLICY * POLICIES_IN_BATCH))
    with ProcessPoolExecutor(workers) as pool:
        for told in pool.map(partial(_batch, seed), range(batches)):
            yield from told


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    found = next(differences(given.decisions, given.seed, given.workers), None)
    took = time.monotonic() - began
    which = ", ".join(cores())
    sys.stdout.write(f"seed {given.seed}: {given.decisions} decisions compared in {took:.0f} s on: {which}\n")
    sys.stdout.write(f"{found or 'no difference'}\n")
    sys.exit(found is not None)


if __name__ == "__main__":
    main()
