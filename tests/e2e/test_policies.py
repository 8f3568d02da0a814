"""From a written policy to verified rules without a model, and decisions by them, as processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.repo.repository import ROOT
from support.servers.processes import PERIPETY, environment

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess


EXAMPLE = ROOT / "examples" / "policies" / "office"
TOOL = {"server_name": "alpha", "tool_name": "fetch"}


def peripety(
    home: Path, *arguments: str, given: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PERIPETY, "policy", *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment(home, **settings),
    )


def office(home: Path) -> Path:
    return home / "build" / "office"


def order(folder: Path, constitution: str, tools: list[dict[str, Any]], **more: Any) -> str:
    (folder / "constitution.md").write_text(constitution, encoding="utf-8")
    for name, content in {"tools": tools, **more}.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return str(folder)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory where the example is compiled, in `build/office`, and stored."""
    home = tmp_path_factory.mktemp("policies")
    compiled = peripety(home, "compile", str(EXAMPLE), "-o", str(office(home)))
    assert compiled.returncode == 0, compiled.stderr
    (home / "told.txt").write_text(compiled.stdout, encoding="utf-8")
    return home


def test_the_example_is_compiled_without_a_model_with_every_sentence_followed(home: Path) -> None:
    told = (home / "told.txt").read_text(encoding="utf-8")
    line, figures = told.index("11 of 11 sentences followed"), told.index("rule coverage: ")
    assert line < figures
    assert re.search(r"^  mutants killed: ", told, re.MULTILINE)


@pytest.mark.slow(reason="compiles a policy as a process")
def test_what_is_contested_is_written_but_not_stored(tmp_path: Path) -> None:
    text = "It may fetch."
    rule = {"id": "fetch", "principle": text, "when": {"tools": ["fetch"]}, "then": "allow", "reason": text}
    scenario = {
        "description": "strict",
        "request": {**TOOL, "arguments": {}},
        "expected_decision": "deny",
        "reasoning": "too strict",
    }
    blame = {"description": "strict", "blame": "scenario", "corrected_decision": "allow", "reasoning": text}
    answers = {
        "# Rule author": {"rules": [rule]},
        "# Scenario author": {"scenarios": [scenario]},
        "A judge reads the policy": {
            "scenarios": [],
            "contested": [{"description": "strict", "sentence": text}],
        },
        "# Judge of disagreements": {"satisfied": False, "attributions": [blame], "probes": []},
        "# Mender of rules": {"reasoning": "The rules are right.", "operations": []},
        '"sentences":': {"satisfied": True, "attributions": [], "probes": []},
    }
    responses = [
        {"pattern": {"type": "contains", "text": words}, "response": json.dumps(answer)}
        for words, answer in answers.items()
    ]
    (tmp_path / "script.json").write_text(json.dumps({"responses": responses}))
    folder, out = order(tmp_path, text, [TOOL]), tmp_path / "out"
    settings = {"MODEL_PROVIDER": "scripted", "PERIPETY_SCRIPT": str(tmp_path / "script.json")}
    done = peripety(tmp_path, "compile", folder, "-o", str(out), **settings)
    assert done.returncode == 1, done.stdout
    assert "EXPECTATION_CONTESTED" in done.stderr
    assert "nothing is stored; rules and scenarios are written to" in done.stderr
    assert [one["id"] for one in read(out / "policy.json")["rules"]] == ["fetch"]
    assert [one["description"] for one in read(out / "scenarios.json")][-1] == "strict"
    assert peripety(tmp_path, "list").stdout == ""


@pytest.mark.slow(reason="compiles a policy several times as processes")
def test_a_sentence_that_is_not_followed_fails_or_closes_its_tools(tmp_path: Path) -> None:
    text = "It may fetch. It may fetch at most 5 times per hour. Be careful."
    folder = order(tmp_path, text, [TOOL])
    failed = peripety(tmp_path, "compile", folder)
    assert failed.returncode == 1
    assert "1 of 3 sentences followed: 1 enforced, 1 in part (" in failed.stderr
    assert "no rule implements: Be careful." in failed.stderr
    assert "coverage" not in failed.stdout
    assert peripety(tmp_path, "list").stdout == ""
    done = peripety(tmp_path, "compile", folder, "--allow-partial", "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("1 of 3 sentences followed") < done.stdout.index("rule coverage: ")
    decided = peripety(tmp_path, "decide", str(tmp_path / "out"), "alpha", "fetch")
    assert decided.stdout.startswith("escalate")


@pytest.mark.slow(reason="starts a process for each case")
def test_the_same_policy_is_compiled_once(home: Path) -> None:
    told = json.loads(peripety(home, "compile", str(EXAMPLE), "--json").stdout)
    assert told["from_cache"] is True
    assert told.get("usage", {}).get("calls", 0) == 0
    listed = peripety(home, "list", "--json").stdout.splitlines()
    assert [json.loads(line)["policy_id"] for line in listed] == [told["policy"]["policy_id"]]


@pytest.mark.slow(reason="compiles a policy in a process")
def test_scenarios_that_hold_are_verified_and_one_that_does_not_is_named(home: Path, tmp_path: Path) -> None:
    verified = peripety(home, "verify", str(office(home)))
    assert (verified.returncode, ", 0 failed" in verified.stdout) == (0, True), verified.stderr
    suite = read(office(home) / "scenarios.json")
    suite[0]["expected"] = "allow" if suite[0]["expected"] != "allow" else "deny"
    changed = tmp_path / "scenarios.json"
    changed.write_text(json.dumps(suite), encoding="utf-8")
    failed = peripety(home, "verify", str(office(home)), "--scenarios", str(changed))
    assert failed.returncode == 1
    assert f"failed: {suite[0]['description']}" in failed.stdout


@pytest.mark.slow(reason="works through thousands of tools or mutants")
def test_a_change_that_allows_more_is_told_with_a_call_that_shows_it(home: Path, tmp_path: Path) -> None:
    document = read(office(home) / "policy.json")
    assert peripety(home, "diff", str(office(home)), str(office(home))).returncode == 0
    rule = next(one for one in document["rules"] if one["id"] == "files.1.allow")
    rule["when"]["arguments"][0]["among"].append("/srv/other")
    wider = tmp_path / "policy.json"
    wider.write_text(json.dumps(document), encoding="utf-8")
    differing = peripety(home, "diff", str(office(home)), str(wider), "--json")
    assert differing.returncode == 1, differing.stderr
    change = json.loads(differing.stdout)["changes"][0]
    assert (change["before"]["decision"], change["after"]["decision"]) == ("deny", "allow")
    witness = change["witness"]
    call = (witness["server_name"], witness["tool_name"], json.dumps(witness["arguments"]))
    assert peripety(home, "decide", str(wider), *call).returncode == 0
    assert peripety(home, "decide", str(office(home)), *call).returncode == 1
    told = peripety(home, "diff", str(office(home)), str(wider)).stdout
    assert "→ allow by files.1.allow" in told


@pytest.mark.slow(reason="works through thousands of tools or mutants")
def test_mutants_are_counted_and_what_a_suite_misses_is_made(home: Path, tmp_path: Path) -> None:
    mutated = peripety(home, "mutate", str(office(home)))
    assert mutated.returncode == 0, mutated.stderr
    assert re.search(r"^mutants killed: [\d,]+ of [\d,]+ \(\d+\.\d%\)", mutated.stdout, re.MULTILINE)
    (tmp_path / "none.json").write_text("[]", encoding="utf-8")
    made = tmp_path / "made.json"
    nothing = ("--scenarios", str(tmp_path / "none.json"))
    covered = peripety(home, "generate-scenarios", str(office(home)), *nothing, "--out", str(made))
    assert covered.returncode == 0, covered.stderr
    verified = peripety(home, "verify", str(office(home)), "--scenarios", str(made))
    assert (verified.returncode, ", 0 failed" in verified.stdout) == (0, True)


@pytest.mark.slow(reason="starts a process for each case")
def test_rules_of_the_example_are_analyzed(home: Path) -> None:
    analyzed = peripety(home, "analyze", str(office(home)), "--json")
    issues = json.loads(analyzed.stdout).get("issues", [])
    assert analyzed.returncode == (1 if issues else 0), analyzed.stderr


@pytest.mark.slow(reason="works through thousands of tools or mutants")
def test_what_is_stored_is_shown_asked_and_deleted(tmp_path: Path, server: ServerProcess) -> None:
    at = ("--server", server.address)
    folder = order(tmp_path, "It may fetch.", [TOOL])
    stored = json.loads(peripety(tmp_path, "compile", folder, "--json", *at).stdout)["policy"]["policy_id"]
    assert "alpha.1.allow: allow" in peripety(tmp_path, "show", stored, *at).stdout
    assert peripety(tmp_path, "decide", stored, "alpha", "fetch", *at).returncode == 0
    assert peripety(tmp_path, "verify", stored, *at).returncode == 0
    assert peripety(tmp_path, "delete", stored, *at).returncode == 0
    gone = peripety(tmp_path, "show", stored, *at)
    assert (gone.returncode, "POLICY_NOT_FOUND" in gone.stderr) == (1, True)


@pytest.mark.slow(reason="starts a process for each case")
@pytest.mark.parametrize(
    ("constitution", "tools", "more", "code", "words"),
    [
        ("", [TOOL], {}, 2, "constitution"),
        ("  \n", [TOOL], {}, 2, "constitution"),
        ("It may fetch.", [], {}, 2, "tools"),
        ("It may fetch.", [{"server_name": "alpha"}], {}, 2, "tool_name"),
        ("It may fetch.", [TOOL, TOOL], {}, 2, "tools[1]"),
        ("It may fetch.", [{**TOOL, "input_schema": {"type": 1}}], {}, 2, "input_schema"),
        ("It may fetch.", [{**TOOL, "read_only": "yes"}], {}, 2, "tools.json[0].read_only"),
        (
            "It may fetch.",
            [TOOL],
            {
                "foundation": {
                    "lists": {
                        "a": {"kind": "path", "values": ["@b"]},
                        "b": {"kind": "path", "values": ["@a"]},
                    },
                },
            },
            2,
            "LIST_CYCLE",
        ),
        (
            "It may fetch.",
            [TOOL],
            {
                "handwritten": [
                    {"description": "a", "request": TOOL, "expected": "allow"},
                    {"description": "b", "request": TOOL, "expected": "deny"},
                ],
            },
            2,
            "handwritten",
        ),
    ],
)
def test_what_cannot_be_compiled_is_refused_by_name(
    tmp_path: Path,
    constitution: str,
    tools: Any,
    more: Any,
    code: int,
    words: str,
) -> None:
    refused = peripety(tmp_path, "compile", order(tmp_path, constitution, tools, **more))
    assert refused.returncode == code, refused.stderr
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.slow(reason="compiles a policy in a process")
def test_what_a_person_wrote_and_the_words_do_not_say_ends_with_who_has_to_decide(tmp_path: Path) -> None:
    other = [{"description": "a", "request": {**TOOL, "arguments": {}}, "expected": "deny"}]
    refused = peripety(tmp_path, "compile", order(tmp_path, "It may fetch.", [TOOL], handwritten=other))
    assert (refused.returncode, "fix: " in refused.stderr) == (1, True)


@pytest.mark.slow(reason="works through thousands of tools or mutants")
def test_ten_thousand_tools_are_worked_through_in_batches(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    tools = [{"server_name": "alpha", "tool_name": f"tool_{number}"} for number in range(10_000)]
    compiled = peripety(tmp_path, "compile", order(tmp_path, "tool_9999 is allowed.", tools), "-o", out)
    assert compiled.returncode == 0, compiled.stderr
    assert "alpha/tool_19, and 9,979 more" in " ".join(compiled.stdout.split())
    assert peripety(tmp_path, "decide", out, "alpha", "tool_9999").returncode == 0
    assert peripety(tmp_path, "decide", out, "alpha", "tool_0").returncode == 1


@pytest.mark.slow(reason="works through thousands of tools or mutants")
def test_thousands_of_tools_with_a_rule_for_each_batch_are_measured_to_the_last(tmp_path: Path) -> None:
    tools = [
        {"server_name": f"server-{number // 25}", "tool_name": f"tool_{number}"} for number in range(4_000)
    ]
    words = "tool_3999 is allowed. Everything else must be approved."
    compiled = peripety(tmp_path, "compile", order(tmp_path, words, tools), "--json")
    assert compiled.returncode == 0, compiled.stderr
    measured = json.loads(compiled.stdout)["policy"]["verification"]
    assert measured["mutation"]["score"] == 1.0
    assert "MEASURED_IN_PART" not in compiled.stderr
    assert not any(one.get("uncovered") for one in measured["coverage"])


def test_the_program_of_the_guide_runs_as_it_stands(home: Path) -> None:
    guide = (ROOT / "docs" / "reference" / "policies-semantics.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    program = program.replace("build/office", str(office(home)))
    subprocess.run([sys.executable, "-c", program], check=True, env=environment(home))
