"""Run events to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.client.items import item_error
from peripety.testgen.events import (
    Completed,
    DuplicateDropped,
    Failed,
    Measured,
    Progressed,
    Reflected,
    Started,
    TestMade,
    TestRan,
)
from peripety.testgen.messages.cases import case_to_proto, quality_to_proto, verdict_to_proto
from peripety.testgen.messages.environments import environment_to_proto
from peripety.testgen.messages.orders import categories_to_proto
from peripety.testgen.messages.runs import phase_to_proto, reflection_to_proto, stats_to_proto

if TYPE_CHECKING:
    from peripety.durable.model import Recorded
    from peripety.testgen.events import RunEvent
    from peripety.testgen.model import TestGenOrder

__all__ = ["event_to_proto", "rerun_response"]


def event_to_proto(run_id: str, recorded: Recorded[RunEvent]) -> pb.TestGenEvent:
    """Convert an event of a run."""
    written = pb.TestGenEvent(run_id=run_id, sequence=recorded.sequence)
    match recorded.event:
        case Started(order):
            written.start.CopyFrom(_start(order))
        case TestMade(test):
            written.test.CopyFrom(case_to_proto(test))
        case Progressed() as event:
            written.progress.CopyFrom(_progress(event))
        case Reflected(reflection):
            written.reflection.CopyFrom(reflection_to_proto(reflection))
        case DuplicateDropped(test, of, level):
            named = pb.DuplicateLevel.Value(f"DUPLICATE_LEVEL_{level.name}")
            written.duplicate.CopyFrom(
                pb.TestGenEvent.Duplicate(test=case_to_proto(test), duplicate_of=of, level=named)
            )
        case TestRan() as event:
            written.test_ran.CopyFrom(_ran(event))
        case Measured(quality):
            written.measured.CopyFrom(quality_to_proto(quality))
        case Completed(stats):
            written.complete.CopyFrom(pb.TestGenEvent.Complete(stats=stats_to_proto(stats)))
        case Failed(error):
            written.error.CopyFrom(item_error(error))
    return written


def rerun_response(event: TestRan | Measured) -> pb.RunTestsResponse:
    """Convert an event of a rerun, without its sequence number."""
    if isinstance(event, TestRan):
        return pb.RunTestsResponse(test_ran=_ran(event))
    return pb.RunTestsResponse(measured=quality_to_proto(event.quality))


def _start(order: TestGenOrder) -> pb.TestGenEvent.Start:
    environment = order.environment
    return pb.TestGenEvent.Start(
        task_id=order.task_id,
        task_description=order.description,
        environment=None if environment is None else environment_to_proto(environment),
        categories=categories_to_proto(order.categories),
    )


def _progress(event: Progressed) -> pb.TestGenEvent.Progress:
    return pb.TestGenEvent.Progress(
        phase=phase_to_proto(event.phase),
        current_category=event.category,
        round_number=event.round,
        status=event.status,
    )


def _ran(event: TestRan) -> pb.TestGenEvent.TestRan:
    return pb.TestGenEvent.TestRan(test_id=event.test_id, verdict=verdict_to_proto(event.verdict))
