"""`peripety usage`: the table and the lines of JSON."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.core.storage.database import Database
from peripety.gateway.calls.executor import CallRecord
from peripety.gateway.calls.rate_limiter import CallUsage
from peripety.gateway.models.call_cost import Cost
from peripety.gateway.types.response import Usage
from peripety.gateway.usage import UsageAggregator, UsageStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["usage", *arguments])


def call(model: str, cost: Cost | None) -> CallRecord:
    usage = Usage(12_000, 500, 9_000, 1_000)
    return CallRecord("openai", model, None, "OK", NOON, 1.0, CallUsage(0, 0), usage, cost)


@pytest.fixture(autouse=True)
def _calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    monkeypatch.setenv("PERIPETY_DATABASE_URL", url)

    async def keep(calls: Iterable[CallRecord]) -> None:
        database = await Database.open(url)
        book = UsageAggregator(UsageStore(database), lambda: NOON)
        for each in calls:
            book.add_call(each)
        await book.aclose()
        await database.close()

    cost = Cost(1_250_000_000_000, -5 * 10**9)
    asyncio.run(keep([call("gpt-4o", cost), call("gpt-4o-2026-01-31", cost), call("other", None)]))


def test_the_table_has_a_row_for_each_combination() -> None:
    result = run("--by", "provider,model,day")
    assert result.exit_code == 0, result.output
    heading, *rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert heading.startswith("provider model day calls")
    assert rows == [
        "openai gpt-4o 2026-11-18 2 24,000 18,000 2,000 1,000 $2.50 -$0.010000 0",
        "openai other 2026-11-18 1 12,000 9,000 1,000 500 ? ? 0",
    ]


def test_without_dimensions_there_is_one_sum_as_json_too() -> None:
    result = run("--json")
    (row,) = map(json.loads, result.stdout.splitlines())
    assert row["usage"]["calls"] == 3
    assert "cost" not in row["usage"]


def test_a_dimension_that_is_none_is_refused_with_those_there_are() -> None:
    result = run("--by", "hour")
    assert result.exit_code == 2
    assert "conversation, day" in " ".join(result.stderr.split()).replace("│ ", "")
