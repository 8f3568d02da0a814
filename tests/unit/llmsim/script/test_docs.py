"""The user's guide is complete, and its examples work."""

from __future__ import annotations

import dataclasses
import re
import shlex
from typing import Any

import pytest

from peripety.llmsim import ScriptBuilder, Simulator
from peripety.llmsim.faults.kinds import KINDS, FaultKind, FaultSetting
from peripety.llmsim.lint.script_lint import FlawCode
from peripety.llmsim.script.files import parse_script
from peripety.llmsim.script.types import (
    Fault,
    Pace,
    RateLimit,
    Script,
    ScriptedCall,
    ScriptedUsage,
    ScriptResponse,
    ScriptRule,
    ScriptTurn,
)
from peripety.llmsim.types import SimStopReason
from support.repo.repository import ROOT, command_exists, options_of

PAGES = ("reference/llmsim-script.md", "how-to/test-with-llmsim.md")
GUIDE = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
EXAMPLES = ROOT / "examples" / "simulator"
BLOCK = re.compile(r"^```(toml|json)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIRST_CELL = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)

blocks = [
    pytest.param(*match.groups(), id=f"line-{GUIDE.count(chr(10), 0, match.start()) + 1}")
    for match in BLOCK.finditer(GUIDE)
]


def section(heading: str) -> str:
    (found,) = re.findall(rf"^##+ {heading}\n(.*?)(?=^##|\Z)", GUIDE, re.DOTALL | re.MULTILINE)
    return str(found)


def names(kind: type[Any]) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(("format_", "text"), blocks)
def test_every_scenario_of_the_guide_is_valid(format_: str, text: str) -> None:
    assert parse_script(text, format=format_, base=EXAMPLES) != Script()


def test_the_guide_has_scenarios() -> None:
    assert len(blocks) >= 8


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("Script", names(Script)),
        ("Rule", names(ScriptRule)),
        ("Turn", names(ScriptTurn)),
        ("Turn Sequences", names(ScriptTurn)),
        ("Pattern", {"type", "text", "pattern", "ignore_case", "model", "tool_result", "message_index"}),
        ("Response", names(ScriptResponse) | {"json"}),
        ("Tool call", names(ScriptedCall)),
        ("Usage", names(ScriptedUsage)),
        ("Pace", names(Pace)),
        ("Limit", names(RateLimit)),
        ("Failure", names(Fault) - {"settings"} | KINDS.keys()),
    ],
)
def test_the_guide_has_every_field(heading: str, fields: set[str]) -> None:
    assert set(FIRST_CELL.findall(section(heading))) == fields


def test_the_guide_has_every_reason_to_stop() -> None:
    (row,) = (line for line in section("Response").splitlines() if line.startswith("| `stop` |"))
    assert set(re.findall(r"`(\w+)`", row)) == {"stop", *(stop.value for stop in SimStopReason)}


def setting(name: str, about: FaultSetting) -> str:
    choices = f": {', '.join(f'`{choice}`' for choice in about.choices)}" if about.choices else ""
    default = "" if about.default is None else f" (`{about.default}`)"
    return f"`{name}`: {about.description}{choices}{default}"


def row(name: str, kind: FaultKind) -> str:
    needs = "tool calls" if kind.needs_tool_calls else "an answer" if kind.needs_response else ""
    settings = "; ".join(setting(name, about) for name, about in kind.settings.items())
    return f"| `{name}` | {kind.description} | {needs} | {settings} |"


def test_the_guide_has_every_failure_as_it_is() -> None:
    table = "\n".join(
        ["| type | what happens | spoils | fields |", "| --- | --- | --- | --- |"]
        + [row(name, kind) for name, kind in KINDS.items()],
    )
    assert f"<!-- failures -->\n{table}\n<!-- /failures -->" in GUIDE, f"the guide has to have\n\n{table}"


def test_what_the_guide_does_in_process_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = PYTHON.findall(section("In process") + section("What can never happen"))
    assert len(found) >= 3
    names: dict[str, Any] = {}
    for block in found:
        exec(block, names)  # noqa: S102 - the guide is ours


@pytest.mark.parametrize(
    ("heading", "kind"),
    [("of a `Simulator`", Simulator), ("of a `ScriptBuilder`", ScriptBuilder)],
)
def test_the_guide_names_the_methods_that_there_are(heading: str, kind: type[Any]) -> None:
    table = section("In process").split(f"| {heading} |")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)[(`]", "\n".join(row.split(" | ")[0] for row in table.splitlines()))
    attributes = {*dir(kind), "captured"}
    assert named
    assert set(named) <= attributes


@pytest.mark.slow(reason="starts a process for each command")
def test_the_commands_of_the_guide_exist() -> None:
    lines = [line for block in SHELL.findall(GUIDE) for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines]
    ours = [words for words in commands if words[0] == "peripety"]
    assert len(ours) >= 5
    assert all(command_exists(words) for words in ours)


def test_the_guide_has_every_flaw() -> None:
    table = section("What can never happen")
    assert set(FIRST_CELL.findall(table)) == {code.value for code in FlawCode}


def test_the_guide_has_every_option_of_the_command() -> None:
    table = section("Over HTTP").split("| option of `peripety simulate` |")[1].split("\n\n")[0]
    first_cells = "\n".join(row.split(" | ")[0] for row in table.splitlines())
    assert set(re.findall(r"(?<=[`])--?[a-z-]+", first_cells)) == options_of("simulate")


def test_nothing_is_said_of_what_was_removed() -> None:
    assert "conversations" not in re.findall(r"`(\w+)`", GUIDE)
