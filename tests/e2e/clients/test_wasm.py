"""Sessions played in WebAssembly are accepted by the server's verification, and forged ones are refused.

`make test-wasm PLAYED=1000` sets the number of sessions.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import os
from itertools import chain, cycle, islice
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.client import verify_transcript
from peripety.engine.lowering import lower
from peripety.engine.visibility import View, Visibility
from peripety.session.bundles.verifier import BundleVerification
from support.engine.seeded_specs import random_calls, random_spec
from support.repo.programs import LONGEST_SECONDS
from support.session.bundles import resealed, verified
from support.typescript_package import PACKAGE, build_package, run_node

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

pytestmark = [
    pytest.mark.slow(reason="builds the package with npm, and plays in Node.js"),
    pytest.mark.timeout(LONGEST_SECONDS),
]

SESSIONS = int(os.environ.get("PERIPETY_LOCAL_SESSIONS", "12"))
MAX_TURNS = 12
FIRST_TURN_LINE = 3
_log = logging.getLogger(__name__)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_package()


async def run_tasks(tasks: list[Json]) -> list[Json]:
    """Run tasks in one process of Node.js, and return their results."""
    text = "".join(json.dumps(task) + "\n" for task in tasks)
    printed = await run_node("build/test/support/local.js", folder=PACKAGE, seconds=800, given=text)
    # JavaScript prints whole numbers as integers; the engine accepts large ones as floats only.
    return [json.loads(line, parse_int=float) for line in printed.splitlines()]


def is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | float | str)


def task_of(seed: int) -> Json:
    """A random session, with actions that are legal, not legal, and unknown."""
    random = Random(seed)
    spec = random_spec(random, later=seed % 2 == 0, story=0)
    spec.pop("solutions", None)
    everything = [action["id"] for action in spec["actions"]]
    turns = []
    for _ in range(random.randint(1, MAX_TURNS)):
        calls = [call for call in random_calls(random, spec, everything) if "act" in call]
        turns.append(
            [
                {"actionId": call["act"], "params": call["params"]}
                for call in calls
                if all(map(is_scalar, call["params"].values()))
            ],
        )
    viewers = [None, *(entity["id"] for entity in spec.get("entities", ()))]
    document = engine.canonicalize(spec).decode()
    return {"play": {"document": document, "seed": seed, "turns": turns, "viewers": viewers}}


def forge(bundle: bytes, random: Random) -> Iterator[tuple[bytes, int]]:
    """Yield a bundle in which one turn breaks the rules, with a correct chain and seal; and that turn."""
    header, spec, *lines, _ = bundle.splitlines()
    if not lines:
        return
    values = [json.loads(line, parse_int=float) for line in lines]
    false_turn = random.randint(1, len(values))
    record, end = values[false_turn - 1]["record"], values[false_turn - 1]["events"][-1]
    match random.choice(("state_hash", "status", "changes", "log", "errors")):
        case "state_hash":
            record["state_hash"] = end["state_hash"] = "0" * 64
        case "status":
            won = {"kind": "won", "condition": "forged", "message": None}
            record["status"] = end["status"] = won
        case "changes":
            extra = {"op": "set", "path": "state.forged", "after": 1, "cause": "action:forged"}
            record["changes"] = end["changes"] = [*record["changes"], extra]
        case "log":
            record["log"].append({"turn": false_turn, "message": "forged", "cause": "action:forged"})
        case "errors":
            record["errors"].append({"code": "FORGED", "rule": "/actions/0", "message": "", "count": 1})
    about = json.loads(header)
    chain = engine.start_hash_chain(about["first_seed"], about["spec_hash"])
    for value in values:
        chain = engine.extend_hash_chain(chain, engine.canonicalize(value["record"]))
        value["events"][-1]["chain_hash"] = chain
    about["chain_hash"] = chain
    yield resealed([engine.canonicalize(about), spec, *map(engine.canonicalize, values)]), false_turn


@pytest.mark.timeout(1800)
async def test_played_sessions_are_accepted_and_forged_ones_are_refused() -> None:
    tasks = [task_of(seed) for seed in range(1, SESSIONS + 1)]
    results = await run_tasks(tasks)
    bundles = []
    turns = 0
    for seed, (task, result) in enumerate(zip(tasks, results, strict=True), 1):
        bundle = base64.b64decode(result["bundle"])
        verification = BundleVerification(io.BytesIO(bundle))
        list(verification.turns())
        assert verification.result.is_valid, (seed, verification.result.issues)
        replay = verification.replay
        assert replay is not None
        played = (result["turn"], result["chainHash"], result["stateHash"])
        assert played == (replay.turn, replay.chain_hash, replay.state_hash)
        state = replay.program.load_state(replay.snapshot)
        is_going_on = replay.status.kind == "ongoing"
        assert result["legalActions"] == list(replay.program.legal_actions(state) if is_going_on else ())
        visibility = Visibility(replay.program.spec)
        for viewer, view in zip(task["play"]["viewers"], result["views"], strict=True):
            projected = View(visibility, viewer).project_state(state.tree())
            assert engine.canonicalize(view) == engine.canonicalize(projected), (seed, viewer)
        turns += replay.turn
        bundles.append(bundle)
    assert turns > len(tasks)
    # A session without turns cannot be forged, so some are forged twice.
    forgeries = (forge(bundle, Random(number)) for number, bundle in enumerate(cycle(bundles)))
    forged = list(islice(chain.from_iterable(forgeries), SESSIONS))
    replayed = await run_tasks([{"replay": base64.b64encode(bundle).decode()} for bundle, _ in forged])
    for (bundle, false_turn), told in zip(forged, replayed, strict=True):
        verify_transcript(bundle.splitlines(keepends=True))  # the hashes alone do not reveal it
        verdict = verified(bundle)[1]
        line = FIRST_TURN_LINE + false_turn - 1
        assert verdict.issues[0].line == line
        assert verdict.issues[0].finding.message.startswith(f"turn {false_turn}: ")
        assert told == {"line": line, "turn": false_turn}
    refused = sum(len(result["refused"]) for result in results)
    _log.info(
        "%d sessions, %d turns accepted, %d turns refused here; %d forged sessions refused",
        *(len(tasks), turns, refused, len(forged)),
    )


async def test_scenarios_that_only_the_server_can_lower_are_refused_by_name() -> None:
    specs = [random_spec(seed, later=True, story=1) for seed in range(1, 9)]
    tasks = [
        {"play": {"document": engine.canonicalize(spec).decode(), "seed": 1, "turns": [], "viewers": []}}
        for spec in specs
    ]
    for spec, result in zip(specs, await run_tasks(tasks), strict=True):
        if lower(spec).is_identity:
            assert "bundle" in result
        else:
            assert result["code"] == "UNSUPPORTED_KEY"
            assert result["path"].startswith("/")
