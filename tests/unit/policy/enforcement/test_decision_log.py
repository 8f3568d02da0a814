"""The decision log: its chain, what is left out of it, and its replay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import ToolRequest, compile_policy
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.policy.enforcement.decision_log import REDACTED, DecisionLog, read_log, replay_log
from support.engine.policies import policy_document, rule, tool

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = [tool("one", "alpha", argument_roles={"/key": "secret", "/inner/key": "secret"})]
POLICY = compile_policy(policy_document(tools=TOOLS, rules=[rule("a", "allow", roles=["r"])]))
STRICT = compile_policy(policy_document(tools=TOOLS, rules=[rule("b", "deny")]))


def _write(path: Path, *calls: dict[str, Any], redacted: tuple[str, ...] = ()) -> None:
    log = DecisionLog(path, redacted)
    for arguments in calls:
        request = ToolRequest("alpha", "one", arguments, ("r",))
        log.append(request, POLICY, POLICY.decide(request), "forwarded", 1.5)
    log.close()


def test_lines_are_chained_across_processes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    _write(path, {}, {"a": 1})
    _write(path, {"b": 2})
    entries = [*read_log(path)]
    assert [entry["sequence"] for entry in entries] == [1, 2, 3]
    assert [entry["previous"] for entry in entries[1:]] == [entry["hash"] for entry in entries[:-1]]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("change", ["edit", "remove", "reorder", "garbage"])
def test_a_changed_log_is_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / "log"
    _write(path, {}, {"a": 1}, {"b": 2})
    lines = path.read_text().splitlines(keepends=True)
    if change == "edit":
        lines[1] = lines[1].replace('"a": 1', '"a": 2')
    elif change == "remove":
        del lines[1]
    elif change == "reorder":
        lines[0], lines[1] = lines[1], lines[0]
    else:
        lines[2] = "{\n"
    path.write_text("".join(lines))
    with pytest.raises(InvalidArgumentError) as caught:
        [*read_log(path)]
    assert caught.value.code == "LOG_BROKEN"
    with pytest.raises(FailedPreconditionError):
        DecisionLog(path)


@pytest.mark.parametrize(
    "content", ["words\n", "[1]\n", "{}\n", '{\n  "previous": ""\n}\n', '"a"', "\x00\xff"]
)
def test_a_file_that_is_not_a_log_is_named_as_such(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(InvalidArgumentError, match="file is not a decision log") as caught:
        [*read_log(path)]
    assert caught.value.code == "FILE_INVALID"
    with pytest.raises(FailedPreconditionError, match="is not a decision log"):
        DecisionLog(path)


def test_values_of_redacted_roles_and_names_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    call = {"key": "canary", "inner": {"key": ["canary"], "other": 1}, "named": {"x": "canary"}}
    _write(path, call, redacted=("secret", "named"))
    assert "canary" not in path.read_text()
    (entry,) = read_log(path)
    inner = {"key": REDACTED, "other": 1}
    assert entry["arguments"] == {"key": REDACTED, "inner": inner, "named": REDACTED}
    assert call["key"] == "canary"


def test_a_replay_shows_the_calls_that_other_rules_decide_differently(tmp_path: Path) -> None:
    path = tmp_path / "log"
    _write(path, {"key": "v"}, {"x": 1}, redacted=("secret",))
    assert [*replay_log(POLICY, read_log(path))] == []
    changes = [*replay_log(STRICT, read_log(path))]
    assert [(one.sequence, one.before, one.after.decision.value, one.is_redacted) for one in changes] == [
        (1, "allow", "deny", True),
        (2, "allow", "deny", False),
    ]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="missing"):
        DecisionLog(tmp_path / "missing" / "log")


def test_a_line_has_what_a_reviewer_needs(tmp_path: Path) -> None:
    path = tmp_path / "log"
    _write(path, {"x": 1})
    entry = json.loads(path.read_text())
    assert (entry["decision"], entry["rule_id"], entry["outcome"]) == ("allow", "a", "forwarded")
    assert (entry["server_name"], entry["tool_name"], entry["arguments"]) == ("alpha", "one", {"x": 1})
    assert len(entry["policy_hash"]) == len(entry["call_hash"]) == 64
