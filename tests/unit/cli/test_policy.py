"""`peripety policy`: decisions about a call, with documents given on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.errors import InvalidArgumentError, NotFoundError, SpecError

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
    assert [violation.field for violation in refused.exception.violations] == ["request.arguments"]


def scenario(description: str, tool: str, expected: str, **more: Any) -> dict[str, Any]:
    request = {"server_name": "alpha", "tool_name": tool}
    return {"description": description, "request": request, "expected": expected, **more}


def written(folder: Path, document: dict[str, Any], *scenarios: dict[str, Any]) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "policy.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "scenarios.json").write_text(json.dumps(scenarios), encoding="utf-8")
    return str(folder)


ONE = rule("a", "allow", tools=["one"])
BOTH = rule("b", "allow", tools=["one", "two"])


def test_what_fails_and_what_is_masked_is_told(tmp_path: Path) -> None:
    holds, fails = scenario("alpha", "one", "allow", rule_id="b"), scenario("beta", "two", "deny")
    result = run("verify", written(tmp_path, policy(ONE, BOTH), holds, fails))
    assert result.exit_code == 1, result.output
    first, *others = result.stdout.splitlines()
    assert first == "1 passed, 1 failed"
    assert "  failed: beta: expects deny, is allow by b" in others
    assert "  masked: alpha: is allow by a, before b" in others
    assert run("verify", written(tmp_path, policy(ONE), fails)).exit_code == 0


def test_the_mutation_score_is_measured_where_it_is_asked_for(tmp_path: Path) -> None:
    folder = written(tmp_path, policy(ONE), scenario("alpha", "one", "allow"))
    assert "figures of the rules as they stand" in run("mutate", folder).stdout
    assert "mutants" not in run("verify", folder).stdout
    told = json.loads(run("verify", folder, "--mutation", "--json").stdout)
    assert told["mutation"]["killed"] > 0
    assert run("mutate", folder).stdout.splitlines()[1].startswith("mutants killed: ")


def test_a_rule_that_decides_nothing_is_told_with_who_is_to_blame() -> None:
    result = run("analyze", "-", given=policy(BOTH, ONE))
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("a: shadowed: ")
    assert "  example: alpha/one {}\n" in result.stdout
    sound = run("analyze", "-", given=policy(ONE))
    assert (sound.exit_code, sound.stdout) == (0, "0 issues\n")


def test_rules_are_explained_beside_their_sentences(tmp_path: Path) -> None:
    folder = written(tmp_path, policy({**ONE, "principle": "Alpha may use one."}))
    (tmp_path / "constitution.md").write_text("Alpha may use one.\n\nBeta is new.\n", encoding="utf-8")
    result = run("explain", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "Alpha may use one.",
        "  Allow a call of alpha/one. (a)",
        "    this call: alpha/one {} → allow by a",
        "    not this: alpha/two {} → deny by no rule",
        "Beta is new.",
        "  no rule implements it, so it allows nothing",
    ]
    first, second = map(json.loads, run("explain", folder, "--json").stdout.splitlines())
    assert first["rules"][0]["text"] == "Allow a call of alpha/one."
    assert second == {"sentence": "Beta is new."}


def test_the_report_shows_sentences_rules_and_two_calls_escaped(tmp_path: Path) -> None:
    folder = written(tmp_path, policy({**ONE, "principle": "Alpha may use one."}))
    (tmp_path / "constitution.md").write_text("Alpha may use one.\n\nBeta is <new>.\n", encoding="utf-8")
    page = tmp_path / "report.html"
    assert run("explain", folder, "--html", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "1 of 2 sentences with rules" in text
    assert "Allow a call of alpha/one." in text
    assert "<dt>decides</dt><dd><code>alpha/one {} → allow by a</code>" in text
    assert "<dt>just misses</dt><dd><code>alpha/two {} → deny by no rule</code>" in text
    assert "Beta is &lt;new&gt;." in text
    assert "<new>" not in text


def test_typed_calls_are_decided_with_the_rules_that_did_not_apply(tmp_path: Path) -> None:
    only = rule("n", "deny", tools=["one"], logic={">": [{"var": "arguments.n"}, 5]})
    folder = written(tmp_path, policy(only, ONE))
    typed = 'one n=6\nalpha/one {"n": 5}\nthree\none n\nroles x\ntools\nquit\none\n'
    result = CliRunner().invoke(app, ["policy", "repl", folder], input=typed)
    assert result.exit_code == 0, result.output
    lines = [line.removeprefix("> ") for line in result.stdout.splitlines()]
    first, second = lines.index("deny by n"), lines.index("allow by a")
    assert lines[first + 1 : first + 3] == ["  Because of n.", "  not decided by a: allow"]
    assert "  not decided by n: deny" in lines[second:]
    assert any("tool 'three' cannot be selected" in line for line in lines)
    assert any("'n' is not NAME=VALUE" in line for line in lines)
    assert "  alpha/two" in [line.rstrip() for line in lines]
    assert lines.count("allow by a") == 1


def test_what_becomes_allowed_is_told_with_a_call(tmp_path: Path) -> None:
    before, after = written(tmp_path / "before", policy(ONE)), written(tmp_path / "after", policy(BOTH))
    differing = run("diff", before, after)
    assert differing.exit_code == 1, differing.output
    assert "deny by no rule → allow by b: alpha/two {}\n" in differing.stdout
    renumbered = written(tmp_path / "renumbered", policy({**BOTH, "id": "a"}, {**ONE, "id": "b"}))
    again = run("diff", written(tmp_path / "two", policy(ONE)), renumbered).stdout.splitlines()
    assert [line for line in again if line.startswith("rule")] == ["rule a: add"]
    same = run("diff", before, before)
    assert (same.exit_code, same.stdout) == (0, "the policies decide every request alike\n")


def test_scenarios_that_are_missing_are_made_and_kept_with_the_others(tmp_path: Path) -> None:
    folder = written(tmp_path, policy(ONE), scenario("alpha", "one", "allow"))
    suite = tmp_path / "more.json"
    made = run("generate-scenarios", folder, "--out", str(suite))
    assert made.exit_code == 0, made.output
    assert "deny: alpha/two {}\n" in made.stdout
    first, *others = json.loads(suite.read_text(encoding="utf-8"))
    assert first["description"] == "alpha"
    assert {one["source"] for one in others} == {"directed"}
    assert run("verify", folder, "--scenarios", str(suite)).exit_code == 0


def test_a_policy_with_errors_is_refused_with_all_of_them(tmp_path: Path) -> None:
    folder = written(tmp_path, policy(rule("structural-a", "allow", tools=["three"])))
    for command in ("verify", "analyze", "explain", "mutate", "generate-scenarios"):
        refused = run(command, folder)
        assert isinstance(refused.exception, SpecError), command
        assert len(refused.exception.findings) == 2
    assert isinstance(run("diff", folder, folder).exception, SpecError)


def test_an_operator_that_is_unknown_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path, policy(ONE), scenario("alpha", "one", "allow"))
    refused = run("mutate", folder, "--operator", "wobble")
    assert isinstance(refused.exception, InvalidArgumentError)
    assert "wobble" in str(refused.exception)


def test_a_policy_that_is_not_stored_is_not_found() -> None:
    for command in ("show", "delete"):
        assert isinstance(run(command, f"pol_{'0' * 24}").exception, NotFoundError)
    assert run("list").stdout == ""


def test_where_no_scenarios_are_named_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(policy()), encoding="utf-8")
    for command in ("verify", "mutate", "generate-scenarios"):
        refused = run(command, str(path))
        assert (refused.exit_code, "--scenarios FILE" in refused.stderr) == (2, True)
