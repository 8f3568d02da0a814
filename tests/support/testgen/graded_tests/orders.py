"""Order of a test generation run for a task, the same for all measured ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.testgen.types import TestGenConfig, TestGenOrder, categories_of

if TYPE_CHECKING:
    from support.testgen.graded_tests.tasks import Task


MAX_TOKENS = 150_000
"""Raised from 50,000, which ends runs with models whose tests are often wrong."""

_SECONDS = 3_600.0
"""Raised, so that figures do not depend on how busy a machine is."""


def order_of(task: Task, *, floor: bool = True) -> TestGenOrder:
    """The order of a task, with the limits that stand in no order but for tokens and time.

    Args:
        task: what is tested.
        floor: whether to start from the tests that need no model.
    """
    config = TestGenConfig(max_total_tokens=MAX_TOKENS, max_total_seconds=_SECONDS, combinatorial_floor=floor)
    context = task.subject.context
    return TestGenOrder(
        task.description,
        task.name,
        context=context,
        categories=categories_of(context),
        config=config,
    )
