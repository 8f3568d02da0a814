"""Orders of runs from and to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.gateway.messages.requests import budget_from_proto
from peripety.requests import require
from peripety.testgen.categories import categories_of
from peripety.testgen.messages.environments import environment_from_proto
from peripety.testgen.model import Category, TaskContext, TestGenConfig, TestGenOrder

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["categories_to_proto", "config_to_proto", "context_to_proto", "order_from_proto"]

_MAX_DESCRIPTION_BYTES = 100 * 1024
_MAX_CATEGORY_BYTES = 10 * 1024
_MAX_NAME_BYTES = 256
_MOST = 1_000
_MOST_TOKENS = 1_000_000_000
_MOST_SECONDS = 86_400

_CONTEXTS = {
    pb.TASK_CONTEXT_UNSPECIFIED: TaskContext.PROMPT,
    **{pb.TaskContext.Value(f"TASK_CONTEXT_{context.name}"): context for context in TaskContext},
}
_LEAST_AND_MOST = {
    "min_tests_per_category": (0, _MOST),
    "target_tests_per_category": (1, _MOST),
    "max_rounds_per_category": (1, _MOST),
    "min_comprehensiveness_score": (1, 10),
    "max_global_refinement_rounds": (0, _MOST),
    "min_total_tests": (0, _MOST),
    "target_total_tests": (1, _MOST),
    "max_total_rounds": (1, _MOST),
    "max_total_tokens": (1, _MOST_TOKENS),
}
_SWITCHES = ("enable_global_refinement", "combinatorial_floor")


def order_from_proto(request: pb.GenerateTestsRequest) -> TestGenOrder:
    """Parse the input of a run.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    require(request.task_description.strip(), ".task_description", "is required; describe the task to test")
    size = len(request.task_description.encode())
    reason = f"has {size} bytes; at most {_MAX_DESCRIPTION_BYTES} are accepted, so shorten it"
    require(size <= _MAX_DESCRIPTION_BYTES, ".task_description", reason)
    for name in ("task_id", "model"):
        value = getattr(request, name)
        size = len(value.encode())
        require(size <= _MAX_NAME_BYTES, f".{name}", f"has more than {_MAX_NAME_BYTES} bytes; shorten it")
        require("\0" not in value, f".{name}", "contains NUL; leave it out")
    require(request.context in _CONTEXTS, ".context", "is not a TaskContext")
    context = _CONTEXTS[request.context]
    return TestGenOrder(
        description=request.task_description,
        task_id=request.task_id,
        environment=environment_from_proto(request.environment) if request.HasField("environment") else None,
        context=context,
        categories=categories_of(context, _categories(request.categories)),
        config=_config(request.config),
        model=request.model or None,
        budget=budget_from_proto(".budget", request.budget),
    )


def categories_to_proto(categories: Iterable[Category]) -> list[pb.Category]:
    """Convert categories."""
    return [pb.Category(name=one.name, description=one.description) for one in categories]


def context_to_proto(context: TaskContext) -> pb.TaskContext.ValueType:
    """Convert a task context."""
    return pb.TaskContext.Value(f"TASK_CONTEXT_{context.name}")


def config_to_proto(config: TestGenConfig) -> pb.TestGenConfig:
    """Convert all limits and targets."""
    named = {name: getattr(config, name) for name in (*_LEAST_AND_MOST, *_SWITCHES)}
    written = pb.TestGenConfig(**named, parallel_categories=config.parallel_categories)
    written.max_total_time.FromNanoseconds(round(config.max_total_seconds * 1e9))
    return written


def _categories(categories: Iterable[pb.Category]) -> list[Category]:
    read = []
    for at, category in enumerate(categories):
        size = len(category.description.encode())
        reason = f"has {size} bytes; at most {_MAX_CATEGORY_BYTES} are accepted, so shorten it"
        require(size <= _MAX_CATEGORY_BYTES, f".categories[{at}].description", reason)
        read.append(Category(category.name, category.description))
    return read


def _config(config: pb.TestGenConfig) -> TestGenConfig:
    # Only fields that are set are listed, so defaults apply to the others.
    named = {*_LEAST_AND_MOST, *_SWITCHES}
    given: dict[str, Any] = {one.name: value for one, value in config.ListFields() if one.name in named}
    for name, (least, most) in _LEAST_AND_MOST.items():
        require(least <= given.get(name, least) <= most, f".config.{name}", f"must be from {least} to {most}")
    if config.HasField("max_total_time"):
        seconds = config.max_total_time.ToNanoseconds() / 1e9
        reason = f"must be above 0 and at most {_MOST_SECONDS} seconds"
        require(0 < seconds <= _MOST_SECONDS, ".config.max_total_time", reason)
        given["max_total_seconds"] = seconds
    return TestGenConfig(**given, parallel_categories=config.parallel_categories)
