"""Runs and their statistics to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.client.items import item_error
from peripety.gateway.messages.answers import spent_to_proto
from peripety.gateway.messages.conversations import time_to_proto
from peripety.testgen.messages.cases import case_to_proto, quality_to_proto
from peripety.testgen.messages.environments import environment_to_proto
from peripety.testgen.messages.orders import categories_to_proto, config_to_proto, context_to_proto

if TYPE_CHECKING:
    from peripety.pages import Page
    from peripety.testgen.events import Phase, Reflection, Stats, StoppedBy
    from peripety.testgen.stored import Run, RunSummary

__all__ = ["phase_to_proto", "reflection_to_proto", "run_to_proto", "runs_to_proto", "stats_to_proto"]


_MOST_BYTES = 3_500_000
"""Size limit of a message, below the gRPC default."""

_SHORT = 200


def run_to_proto(run: Run) -> pb.TestRun:
    """Convert a run with its tests; observed outputs are shortened if the message is too large."""
    written = _run_to_proto(run)
    if written.ByteSize() > _MOST_BYTES:
        for test in written.tests:
            test.verdict.observed = test.verdict.observed[:_SHORT]
    return written


def _run_to_proto(run: Run) -> pb.TestRun:
    state, order, verdicts = run.so_far, run.order, run.verdicts
    return pb.TestRun(
        run_id=run.run_id,
        task_id=order.task_id,
        task_description=order.description,
        environment=None if order.environment is None else environment_to_proto(order.environment),
        context=context_to_proto(order.context),
        categories=categories_to_proto(order.categories),
        config=config_to_proto(order.config),
        phase=phase_to_proto(state.phase) if run.events else pb.TEST_GEN_PHASE_UNSPECIFIED,
        current_category=state.category,
        tests=(case_to_proto(test, verdicts.get(test.test_id)) for test in state.tests.values()),
        reflections=map(reflection_to_proto, state.reflections),
        stats=stats_to_proto(run.stats),
        error=None if run.error is None else item_error(run.error),
        last_sequence=run.last_sequence,
        create_time=time_to_proto(run.created),
        update_time=time_to_proto(run.updated),
    )


def runs_to_proto(page: Page[RunSummary]) -> pb.ListTestRunsResponse:
    """Convert a page of runs."""
    return pb.ListTestRunsResponse(
        runs=map(_summary_to_proto, page.items), next_page_token=page.next_page_token
    )


def stats_to_proto(stats: Stats) -> pb.TestRunStats:
    """Convert statistics of a run."""
    usage = stats.spent.usage
    written = pb.TestRunStats(
        total_tests=stats.total_tests,
        total_rounds=stats.total_rounds,
        category_rounds=stats.category_rounds,
        global_rounds=stats.global_rounds,
        comprehensiveness_score=stats.comprehensiveness_score,
        total_tokens_used=usage.input_tokens + usage.output_tokens,
        usage=spent_to_proto(stats.spent),
        uncertainties=stats.uncertainties,
        stopped_by=_stopped_by_to_proto(stats.stopped_by),
        quality=None if stats.quality is None else quality_to_proto(stats.quality),
        duplicates=stats.duplicates,
    )
    written.duration.FromNanoseconds(round(stats.seconds * 1e9))
    return written


def reflection_to_proto(reflection: Reflection) -> pb.Reflection:
    """Convert a reflection."""
    return pb.Reflection(
        category=reflection.category,
        text=reflection.text,
        action=pb.ReflectionAction.Value(f"REFLECTION_ACTION_{reflection.action.name}"),
        recommendations=reflection.recommendations,
    )


def phase_to_proto(phase: Phase | None) -> pb.TestGenPhase.ValueType:
    """Convert the phase of a run."""
    if phase is None:
        return pb.TEST_GEN_PHASE_UNSPECIFIED
    return pb.TestGenPhase.Value(f"TEST_GEN_PHASE_{phase.name}")


def _summary_to_proto(run: RunSummary) -> pb.TestRunSummary:
    return pb.TestRunSummary(
        run_id=run.run_id,
        task_id=run.task_id,
        phase=phase_to_proto(run.phase),
        total_tests=run.total_tests,
        stopped_by=_stopped_by_to_proto(run.stopped_by),
        create_time=time_to_proto(run.created),
        update_time=time_to_proto(run.updated),
    )


def _stopped_by_to_proto(stopped_by: StoppedBy | None) -> pb.StoppedBy.ValueType:
    if stopped_by is None:
        return pb.STOPPED_BY_UNSPECIFIED
    return pb.StoppedBy.Value(f"STOPPED_BY_{stopped_by.name}")
