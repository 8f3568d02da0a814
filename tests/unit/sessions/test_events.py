from __future__ import annotations

import json

import pytest

from peripety.gateway.model import Spent, Usage
from peripety.sessions.events import (
    Accepted,
    ActionResolved,
    Committed,
    Degraded,
    Dialogue,
    Event,
    NarrativeChunk,
    NarrativeRetracted,
    RuleFailed,
    WorldResolved,
    encode,
    event_of,
    kind_of,
)
from peripety.sessions.model import ActionCall, Resolution
from peripety.sim import ABSENT, Change, LogLine, RuleError, Status

CHANGES = (
    Change("state.a", "set", ABSENT, None, "action:a"),
    Change("state.b[0]", "pop", {"deep": [1, 2.5, "é😀"]}, ABSENT, "decay"),
)
LOG = (LogLine(3, "line", "event:e"),)
ERRORS = (RuleError("MISSING_PATH", "/actions/0", "why"),)
LOST = Status("lost", "first", "over")

EVENTS: list[Event] = [
    Accepted("attempt", "request", (ActionCall("a", {"n": 1.5, "s": "x", "b": True}),), "words\n"),
    ActionResolved("a", {"n": 1e300}, accepted=True, reasons=(), changes=CHANGES, log=LOG),
    WorldResolved("e", CHANGES, LOG, ERRORS, LOST),
    WorldResolved(None, (), (), (), Status("ongoing")),
    NarrativeChunk("a piece"),
    NarrativeRetracted("why"),
    Dialogue("p", "words"),
    Degraded("OUTCOME_INVALID", "why"),
    RuleFailed("STATE_LIMIT", "/actions/0", "why", turn_abandoned=True),
    Committed(
        "s",
        "c",
        LOST,
        ("a", "b"),
        Spent(2, Usage(1, 2, 3, 4), 5, -6),
        CHANGES,
        "prose",
        Resolution.REPAIRED,
        "p/m",
        9,
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=kind_of)
def test_an_event_survives_the_record(event: Event) -> None:
    assert event_of(json.loads(json.dumps(encode(event)))) == event


def test_an_absent_value_differs_from_null_in_the_record() -> None:
    first, second = encode(CHANGES)
    assert "before" not in first
    assert first["after"] is None
    assert "after" not in second
