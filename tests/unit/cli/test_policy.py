"""`peripety policy`: what rules say to a call, on documents that come along."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety.cli import app
from peripety.errors import InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from pathlib import Path


def policy(*rules: dict[str, Any]) -> dict[str, Any]:
    tools = [{"server_name": "alpha", "tool_name": name} for name in ("one", "two")]
    return {"policy_version": "1.0", "id": "p", "name": "P", "tools": tools, "rules": [*rules]}


def rule(rule_id: str, then: str, **when: Any) -> dict[str, Any]:
    return {"id": rule_id, "when": when, "then": then, "reason": f"Because of {rule_id}."}


def run(*arguments: str, given: object = None) -> Result:
    return CliRunner().invoke(app, ["policy", *arguments], input=None if given is None else json.dumps(given))


@pytest.fixture(autouse=True)
def _database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", database_url)


def test_a_decision_says_why_and_its_exit_code_whether_the_call_may_go_on() -> None:
    document = policy(rule("a", "allow", tools=["one"]), rule("b", "escalate", roles=["r"]))
    allowed = run("decide", "-", "alpha", "one", given=document)
    assert (allowed.exit_code, allowed.stdout) == (0, "allow by a\n  Because of a.\n")
    escalated = run("decide", "-", "alpha", "two", "--role", "r", given=document)
    assert (escalated.exit_code, escalated.stdout.splitlines()[0]) == (1, "escalate by b")
    denied = run("decide", "-", "alpha", "two", "{}", "--json", given=document)
    assert (denied.exit_code, json.loads(denied.stdout)["decision"]) == (1, "deny")


def test_arguments_that_are_no_object_are_refused() -> None:
    refused = run("decide", "-", "alpha", "one", "[1]", given=policy())
    assert isinstance(refused.exception, InvalidArgumentError)
    assert [violation.field for violation in refused.exception.violations] == [".request.arguments"]


def test_a_policy_that_is_not_stored_is_not_found() -> None:
    for command in ("show", "delete"):
        assert isinstance(run(command, f"pol_{'0' * 24}").exception, NotFoundError)
    assert run("list").stdout == ""


def test_where_no_scenarios_are_named_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(policy()), encoding="utf-8")
    for command in ("verify", "mutate", "cover"):
        refused = run(command, str(path))
        assert (refused.exit_code, "--scenarios FILE" in refused.stderr) == (2, True)
