"""Behaviour of the native core alone: its binding, and threads that run in parallel."""

from __future__ import annotations

import json
import signal
import threading
import time
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING

import pytest

from peripety.engine.backend_protocol import EngineError
from peripety.engine.policies.types import ToolRequest
from support.engine.backends import backend_named
from support.engine.policies import policy_document, rule
from support.engine.specs import action, at_most, document, never

if TYPE_CHECKING:
    from collections.abc import Iterator


COUNTDOWN = document(
    actions=[action("act", [{"op": "dec", "path": "state.a", "value": 1}])],
    loss_conditions=[at_most("first", "state.a", -1000), never("second")],
)

LONG_ENOUGH = 0.3


def test_other_threads_go_on_during_a_dry_run() -> None:
    core = backend_named("native")
    program = core.compile(core.parse(COUNTDOWN))
    runs, seconds, wakes = 500, 0.0, 0
    while seconds < LONG_ENOUGH:
        runs *= 2
        options = {"runs": runs, "first_run": 0, "seed": "1", "persona": "random", "horizon": 500}
        worker = threading.Thread(target=program.dry_run, args=[json.dumps(options).encode()])
        started = time.monotonic()
        worker.start()
        wakes = 0
        while worker.is_alive():
            time.sleep(0.002)
            wakes += 1
        seconds = time.monotonic() - started
    assert wakes > 5, "a call that keeps the interpreter to itself lets this thread wake once or twice"


@contextmanager
def interruption() -> Iterator[None]:
    """Soon a signal ends what is done meanwhile."""

    def stop(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(InterruptedError):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_decisions_about_requests_as_they_are() -> None:
    core = backend_named("native")
    policy = core.compile_policy(core.parse(policy_document()))
    for work in (policy.decide_many_fast, policy.prepare):
        requests = repeat(ToolRequest("s", "t", {}), 20_000_000)
        with interruption():
            work(requests)  # type: ignore[arg-type]
        assert next(requests), "it went on to the end before it looked"


def test_a_signal_ends_decisions_about_requests_that_were_read() -> None:
    core = backend_named("native")
    expensive = {"in": ["z", {"map": [{"var": "arguments.a"}, {"cat": [{"var": ""}, "x"]}]}]}
    rules = [rule(f"r{number}", "deny", logic=expensive) for number in range(1000)]
    policy = core.compile_policy(core.parse(policy_document(rules=rules)))
    requests = policy.prepare([ToolRequest("s", "t", {"a": ["y"] * 500})] * 2000)
    started = time.monotonic()
    with interruption():
        policy.decide_many(requests)
    assert time.monotonic() - started < 20, "all of them take minutes"


def test_two_threads_can_play_one_state() -> None:
    core = backend_named("native")
    program = core.compile(core.parse(COUNTDOWN))
    state = program.new_state(1)
    workers = [
        threading.Thread(target=lambda: [program.act(state, "act", b"{}") for _ in range(200)])
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert json.loads(state.tree())["a"] == 10 - 800


def test_a_refusal_is_the_error_of_both_cores() -> None:
    with pytest.raises(EngineError, match="expected a value") as refusal:
        backend_named("native").parse(b"?")
    assert (refusal.value.code, refusal.value.path) == ("INVALID_JSON", "")


def test_what_was_never_validated_is_refused_and_nothing_worse() -> None:
    with pytest.raises(EngineError) as refusal:
        backend_named("native").compile(b'{"state": []}')
    assert refusal.value.code == "SPEC_INVALID"
    with pytest.raises(EngineError) as refusal:
        backend_named("native").compile_policy(b'{"tools": []}')
    assert refusal.value.code == "SPEC_INVALID"
    core = backend_named("native")
    program = core.compile(core.parse(COUNTDOWN))
    with pytest.raises(EngineError) as refusal:
        program.load_state(b"{}")
    assert refusal.value.code == "SNAPSHOT_INVALID"
    with pytest.raises(EngineError) as refusal:
        program.dry_run(b"{}")
    assert refusal.value.code == "OPTIONS_INVALID"
