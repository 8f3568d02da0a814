"""Recent events of this process are served from memory, up to the retention limit."""

from __future__ import annotations

from peripety.core.runs.event_log import RunEventBuffer
from peripety.core.runs.types import RecordedEvent


def recorded(first: int, last: int) -> list[RecordedEvent[str]]:
    return [RecordedEvent(sequence, f"event {sequence}") for sequence in range(first, last + 1)]


def test_before_anything_is_recorded_only_the_log_knows() -> None:
    assert RunEventBuffer[str]().since(0) is None


def test_events_after_a_sequence_are_told_in_order() -> None:
    recent = RunEventBuffer[str]()
    recent.append(recorded(4, 6))
    recent.append(recorded(7, 7))
    assert recent.since(3) == recorded(4, 7)
    assert recent.since(5) == recorded(6, 7)
    assert recent.since(7) == []


def test_what_was_recorded_before_by_others_is_left_to_the_log() -> None:
    recent = RunEventBuffer[str]()
    recent.append(recorded(4, 6))
    assert recent.since(2) is None


def test_of_a_long_run_only_the_end_is_remembered() -> None:
    recent = RunEventBuffer[str]()
    recent.append(recorded(1, 10_000))
    assert recent.since(9_999) == recorded(10_000, 10_000)
    assert recent.since(0) is None


def test_followers_look_again_when_there_is_something_to_see() -> None:
    recent = RunEventBuffer[str]()
    before = recent.news
    recent.append([])
    assert not before.is_set()
    recent.append(recorded(1, 1))
    assert before.is_set()
    assert not recent.news.is_set()


def test_what_is_forgotten_is_left_to_the_log() -> None:
    recent = RunEventBuffer[str]()
    recent.append(recorded(1, 3))
    before = recent.news
    recent.clear()
    assert before.is_set()
    assert recent.since(3) is None
