"""Inputs of the policy commands: folders, files, standard input, ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from peripety.cli.policy_author import policy_input, policy_sources
from peripety.errors import InvalidArgumentError

EXAMPLE = Path(__file__).parents[3] / "examples" / "policies" / "office"
TOOL = {"server_name": "a", "tool_name": "b"}
SCENARIO = {"description": "c", "request": TOOL, "expected": "allow"}


def write(path: Path, value: object) -> str:
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_a_folder_has_all_that_is_compiled() -> None:
    request = policy_sources(EXAMPLE, None, None, None, None).to_request()
    assert request.constitution.startswith("# ")
    assert len(request.tools) == len({(tool.server_name, tool.tool_name) for tool in request.tools}) > 8
    assert request.handwritten_scenarios
    assert set(json.loads(request.foundation)) == {"invariants", "lists"}


def test_what_is_named_takes_the_place_of_what_is_in_the_folder(tmp_path: Path) -> None:
    tools = write(tmp_path / "other.json", [TOOL])
    request = policy_sources(EXAMPLE, None, tools, None, None).to_request()
    assert [tool.tool_name for tool in request.tools] == ["b"]
    assert request.constitution


def test_only_the_policy_and_its_tools_have_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "constitution.md").write_text("All may be.", encoding="utf-8")
    write(tmp_path / "tools.json", [TOOL])
    request = policy_sources(tmp_path, None, None, None, None).to_request()
    assert (len(request.handwritten_scenarios), request.foundation) == (0, b"")


@pytest.mark.parametrize(
    "named",
    [
        (None, None, None, None, None),
        (None, "a", None, None, None),
        (None, None, "a", None, None),
        (Path("/nowhere"), None, None, None, None),
        (None, "-", "-", None, None),
    ],
)
def test_what_is_not_named_is_asked_for(
    named: tuple[Path | None, str | None, str | None, None, None],
) -> None:
    with pytest.raises(typer.BadParameter):
        policy_sources(*named)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"[", "not JSON"), (b"\xff", "UTF-8"), (b"[" * 10**5, "not JSON")],
)
def test_a_file_that_is_no_json_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "tools.json").write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=words) as refused:
        policy_sources(
            None,
            str(EXAMPLE / "constitution.md"),
            str(tmp_path / "tools.json"),
            None,
            None,
        ).to_request()
    assert "tools.json" in refused.value.message


def test_a_policy_is_a_folder_a_document_or_what_is_stored(tmp_path: Path) -> None:
    document = write(tmp_path / "policy.json", {"policy_version": "1.0"})
    suite = write(tmp_path / "scenarios.json", [SCENARIO])
    whole = policy_input(str(tmp_path))
    assert json.loads(whole.policy.document) == {"policy_version": "1.0"}
    assert [one.description for one in whole.required_scenarios()] == ["c"]
    assert [one.description for one in policy_input(document, suite).required_scenarios()] == ["c"]
    assert policy_input("pol_0123456789abcdef").policy.policy_id == "pol_0123456789abcdef"
    version = policy_input(f"pol_0123456789abcdef@{'0' * 64}").policy
    assert (version.policy_id, version.policy_hash) == ("pol_0123456789abcdef", "0" * 64)
    assert policy_input("pol_0123456789abcdef").required_scenarios() == ()


def test_a_document_alone_has_no_scenarios(tmp_path: Path) -> None:
    alone = policy_input(write(tmp_path / "policy.json", {}))
    with pytest.raises(typer.BadParameter, match="--scenarios"):
        alone.required_scenarios()


def test_a_folder_that_is_not_compiled_names_the_command(tmp_path: Path) -> None:
    write(tmp_path / "constitution.md", "Reading is allowed.")
    with pytest.raises(
        typer.BadParameter, match=r"has no policy.json; write it with: peripety policy compile"
    ):
        policy_input(str(tmp_path))


def test_a_folder_may_have_the_policy_alone(tmp_path: Path) -> None:
    write(tmp_path / "policy.json", {})
    assert policy_input(str(tmp_path)).scenarios is None


def test_a_policy_that_is_nowhere_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="cannot read nowhere"):
        policy_input("nowhere.json")
