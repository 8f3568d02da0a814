"""`peripety policy conditions`: what remains of the rules for a tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from support.engine.policies import allow, deny, matching, policy_document, tool_with_roles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", f"sqlite:///{tmp_path}/test.db")
    rules = [
        deny("a", logic={">": [{"var": "arguments.amount"}, 50]}),
        allow("b", roles=["a1"], arguments=[matching("/srv")]),
    ]
    path = tmp_path / "policy.json"
    path.write_bytes(policy_document(tools=[tool_with_roles()], rules=rules))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", "conditions", *arguments])


def test_conditions_are_told_in_order(policy: str) -> None:
    told = run(policy, "alpha", "a")
    assert (told.exit_code, told.stdout.splitlines()) == (
        0,
        [
            "1. Deny a call of alpha/a if `amount` is more than 50. (a)",
            "2. Allow a call of alpha/a if the caller has the role a1 and every `place` is below /srv. (b)",
            "3. Deny any other call.",
        ],
    )
    assert run(policy, "alpha", "a", '{"amount": 51}').stdout.splitlines() == [
        "1. Deny a call of alpha/a. (a)",
        "The decision is always deny.",
    ]


def test_json_has_the_remaining_condition(policy: str) -> None:
    told = run(policy, "alpha", "a", '{"amount": 5}', "--role", "a1", "--json")
    (remaining,) = json.loads(told.stdout)["rules"]
    assert (remaining["rule_id"], remaining["condition"]) == ("b", {"arguments": [matching("/srv")]})
    assert json.loads(run(policy, "alpha", "a", "--no-roles", "--json").stdout)["decision"] == "deny"


def test_contradicting_options_and_wrong_arguments_are_refused(policy: str) -> None:
    assert run(policy, "alpha", "a", "--no-roles", "--role", "a1").exit_code == 2
    assert "known.arguments" in str(getattr(run(policy, "alpha", "a", "[1]").exception, "violations", ""))
