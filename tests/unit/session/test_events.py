from __future__ import annotations

import json

import pytest

from peripety.engine import ABSENT, Change, LogLine, RuleError, Status
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.session.events import (
    Accepted,
    ActionResolved,
    Committed,
    Degraded,
    DialogueSpoken,
    Event,
    NarrativeChunk,
    NarrativeRetracted,
    RuleFailed,
    WorldResolved,
    decode_event,
    encode_value,
    event_kind,
)
from peripety.session.types import PlayerAction, Resolution

CHANGES = (
    Change("state.a", "set", ABSENT, None, "action:a"),
    Change("state.b[0]", "pop", {"deep": [1, 2.5, "é😀"]}, ABSENT, "decay"),
)
LOG = (LogLine(3, "line", "event:e"),)
ERRORS = (RuleError("MISSING_PATH", "/actions/0", "why"),)
LOST = Status("lost", "first", "over")

EVENTS: list[Event] = [
    Accepted("attempt", "request", (PlayerAction("a", {"n": 1.5, "s": "x", "b": True}),), "words\n"),
    ActionResolved("a", {"n": 1e300}, accepted=True, reasons=(), changes=CHANGES, log=LOG),
    WorldResolved("e", CHANGES, LOG, ERRORS, LOST),
    WorldResolved(None, (), (), (), Status("ongoing")),
    NarrativeChunk("a piece"),
    NarrativeRetracted("why"),
    DialogueSpoken("p", "words"),
    Degraded("OUTCOME_INVALID", "why"),
    RuleFailed("STATE_LIMIT", "/actions/0", "why", turn_abandoned=True),
    Committed(
        "s",
        "c",
        LOST,
        ("a", "b"),
        UsageTotal(2, Usage(1, 2, 3, 4), 5, -6),
        CHANGES,
        "prose",
        Resolution.REPAIRED,
        "p/m",
        9,
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=event_kind)
def test_an_event_survives_the_record(event: Event) -> None:
    assert decode_event(json.loads(json.dumps(encode_value(event)))) == event


def test_an_absent_value_differs_from_null_in_the_record() -> None:
    first, second = encode_value(CHANGES)
    assert "before" not in first
    assert first["after"] is None
    assert "after" not in second
