"""What a narrator knows that its audience may not, or that others may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.session.events import ActionResolved, NarrativeChunk
from peripety.session.types import Resolution
from support.engine.specs import action
from support.session.sessions import ACTIONS, calling, outcome, played, results, scene

if TYPE_CHECKING:
    from peripety.session.narration.turn_context import NarrationContext


HIDDEN = "zebra-0815-qx"
OWN = "mine-4711-ab"


def secretive(spoken: str = "", **more: Any) -> NarrationContext:
    state = {"a": 1, "b": 2, "private": {"p": {"x": OWN}, "q": {"x": HIDDEN}}}
    return scene(spoken, viewer="p", state=state, **more)


@pytest.mark.parametrize("told_as", [HIDDEN, HIDDEN[::-1], " ".join(HIDDEN), HIDDEN.encode().hex()])
async def test_what_the_audience_may_not_know_is_never_shown(told_as: str) -> None:
    bad = outcome(f"It is said that {told_as} is so.")
    pieces = [bad[start : start + 3] for start in range(0, len(bad), 3)]
    events, gateway = await played(pieces, outcome("Good."), about=secretive())
    assert told_as not in repr(events)
    shown = "".join(one.text for one in events if isinstance(one, NarrativeChunk))
    assert shown == "It is said that Good."
    assert events[-1].narrative == "Good."
    assert events[-1].stats.withheld_secrets == 1
    assert "SECRET_TOLD" in gateway.requests[1].messages[-1].text


async def test_what_the_audience_alone_may_know_gets_into_no_parameter_that_others_see() -> None:
    noting = action("note", [], params={"text": {"type": "string", "maxLength": 40}})
    about = secretive("words", actions=[*ACTIONS, noting])
    events, gateway = await played(
        calling(("action:note", {"text": f"it is {OWN}"}), ("action:note", {"text": "a plain text"})),
        outcome("Told."),
        about=about,
    )
    assert [one.params for one in events if isinstance(one, ActionResolved)] == [{"text": "a plain text"}]
    (refusal, failed), (_, other_failed) = results(gateway)
    assert failed
    assert "contain restricted information" in refusal["error"]
    assert not other_failed


async def test_what_the_player_said_aloud_may_be_a_parameter() -> None:
    noting = action("note", [], params={"text": {"type": "string", "maxLength": 40}})
    about = secretive(f"I note {OWN}", actions=[*ACTIONS, noting])
    events, _ = await played(calling(("action:note", {"text": OWN})), outcome("Told."), about=about)
    assert [one.params for one in events if isinstance(one, ActionResolved)] == [{"text": OWN}]


@pytest.mark.parametrize(
    ("path", "resolution"),
    [("state.a", Resolution.REPAIRED), ("state.private.p.x", Resolution.NARRATED)],
)
async def test_what_the_audience_alone_may_know_gets_into_no_state_that_others_see(
    path: str,
    resolution: Resolution,
) -> None:
    about = secretive(narrator_scope=[{"path": path, "ops": ["set"]}])
    change = {"op": "set", "path": path, "value": f"it is {OWN}"}
    events, gateway = await played(outcome("Bad.", state_changes=[change]), outcome("Good."), about=about)
    assert events[-1].resolution is resolution
    assert len(gateway.requests) == (2 if resolution is Resolution.REPAIRED else 1)


async def test_what_somebody_says_is_held_against_secrets_as_well() -> None:
    line = {"entity_id": "q", "utterance": f"I have {HIDDEN}."}
    events, _ = await played(outcome("Bad.", visible_dialogue=[line]), outcome("Good."), about=secretive())
    assert HIDDEN not in repr(events)
    assert events[-1].stats.withheld_secrets == 1
