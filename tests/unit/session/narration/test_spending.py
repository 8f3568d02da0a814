"""Model of a narrator, and its budgets."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.session.events import Degraded
from peripety.session.types import NarratorOptions
from support.gateway.fake_gateway import SPENT, calling
from support.session.sessions import causes, outcome, played, scene


def options(**more: Any) -> dict[str, Any]:
    return {"narrator": NarratorOptions(**more)}


async def test_the_model_of_the_session_is_asked() -> None:
    _, gateway = await played(outcome("Told."), about=scene(**options(model="anthropic/claude-x")))
    assert gateway.requests[0].model == "anthropic/claude-x"


async def test_each_question_may_use_what_is_left_of_both_budgets() -> None:
    about = scene(
        **options(
            turn_budget=Budget(max_tokens=50, max_seconds=60),
            session_budget=Budget(max_calls=9, max_cost=500),
        ),
        usage=UsageTotal(3, Usage(100, 50), 200, 0),
    )
    _, gateway = await played(calling(("query", {"path": "state"})), outcome("Told."), about=about)
    first, second = (request.budget for request in gateway.requests)
    assert first is not None
    assert second is not None
    assert (first.max_calls, first.max_tokens, first.max_cost) == (6, 50, 300)
    assert (second.max_calls, second.max_tokens, second.max_cost) == (5, 40, 250)
    assert first.max_seconds is not None
    assert first.max_seconds <= 60


async def test_without_budgets_there_is_no_cap() -> None:
    _, gateway = await played(outcome("Told."))
    assert gateway.requests[0].budget is None


@pytest.mark.parametrize(
    ("budgets", "calls"),
    [
        ({"turn_budget": Budget(max_calls=1)}, 1),
        ({"turn_budget": Budget(max_tokens=10)}, 1),
        ({"session_budget": Budget(max_calls=3)}, 0),
        ({"session_budget": Budget(max_cost=200)}, 0),
    ],
)
async def test_once_a_budget_is_used_up_the_server_tells(budgets: dict[str, Any], calls: int) -> None:
    about = scene(**options(**budgets), usage=UsageTotal(3, Usage(100, 50), 200, 0))
    events, gateway = await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert len(gateway.requests) == calls
    assert [one.reason for one in events if isinstance(one, Degraded)] == ["BUDGET_EXHAUSTED"]
    assert events[-1].usage == (SPENT if calls else UsageTotal())
    assert len(causes(about)) == calls
