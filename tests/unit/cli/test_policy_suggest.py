"""`peripety policy suggest`: sentences from a decision log, and a folder that compiles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.engine import ToolRequest, compile_policy
from peripety.errors import InvalidArgumentError
from peripety.policy.enforcement.decision_log import DecisionLog
from support.engine.policies import policy_document, tool

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path"],
}
TOOLS = [tool("write_item", "store", argument_roles={"/path": "write_path"}, input_schema=SCHEMA)]
DOCUMENT = policy_document(tools=TOOLS)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", *arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.json").write_bytes(DOCUMENT)
    policy = compile_policy(DOCUMENT)
    log = DecisionLog(tmp_path / "log")
    for at, name in enumerate(("/out/a", "/out/b", "/out/c", "/out/d")):
        request = ToolRequest("store", "write_item", {"path": name, "content": f"text {at}"})
        log.append(request, policy, policy.decide(request), "shadowed", 1.5)
    log.close()
    return tmp_path


def suggest(folder: Path, *options: str) -> Result:
    return run("suggest", str(folder / "log"), "--policy", str(folder / "policy.json"), *options)


def test_a_suggestion_shows_two_calls_of_each_sentence(folder: Path) -> None:
    out = folder / "guard"
    told = suggest(folder, "--any", "content", "-o", str(out))
    assert (told.exit_code, told.stdout.splitlines()) == (
        0,
        [
            "`write_item` is allowed with the path @seen_write_item_write_path.",
            '  allowed: store/write_item {"path": "/out/a", "content": "text 0"} (4 calls)',
            '  denied: store/write_item {"path": "/out/a-next", "content": "text 0"}',
            "  any value: content",
            "1 sentence for 4 of 4 calls",
        ],
    )
    again = suggest(folder, "-o", str(out))
    assert (again.exit_code, "choose another folder" in again.stderr) == (2, True)


@pytest.mark.slow(reason="compiles and measures a policy")
def test_a_suggestion_compiles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_DATABASE_URL", f"sqlite:///{folder}/store.db")
    out = folder / "guard"
    suggest(folder, "--any", "content", "-o", str(out))
    compiled = run("compile", str(out), "-o", str(folder / "rules"))
    assert compiled.exit_code == 0, compiled.output
    for path, code in (("/out/d", 0), ("/out/e", 1)):
        call = json.dumps({"path": path, "content": "other"})
        assert run("decide", str(folder / "rules"), "store", "write_item", call).exit_code == code


def test_json_has_a_line_for_each_part_and_what_is_left_out_fails(folder: Path) -> None:
    lines = [json.loads(line) for line in suggest(folder, "--any", "content", "--json").stdout.splitlines()]
    assert [[*line] for line in lines] == [
        ["sentence", "calls", "observed", "nearest", "open_arguments"],
        ["list", "kind", "values"],
    ]
    log = folder / "log"
    log.unlink()
    policy = compile_policy(DOCUMENT)
    redacting = DecisionLog(log, ["write_path"])
    request = ToolRequest("store", "write_item", {"path": "/out/a"})
    redacting.append(request, policy, policy.decide(request), "shadowed", 1.5)
    redacting.close()
    told = suggest(folder, "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout) == {
        "left_out": "path of store/write_item is redacted in the log; --any path leaves it open",
        "sequences": [1],
        "is_decided": False,
    }


def test_a_changed_log_and_a_missing_one_are_refused(folder: Path) -> None:
    log = folder / "log"
    log.write_text(log.read_text().replace("/out/a", "/out/z"))
    broken = suggest(folder).exception
    assert isinstance(broken, InvalidArgumentError)
    assert broken.code == "LOG_BROKEN"
    log.unlink()
    missing = suggest(folder).exception
    assert isinstance(missing, InvalidArgumentError)
    assert str(log) in missing.message
