"""Files that a scenario refers to: found beside it, and nowhere else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety.llmsim.script import sources
from peripety.llmsim.script.files import load_script, parse_script
from peripety.llmsim.script.sources import ScriptError, SourcePosition
from peripety.llmsim.script.types import ScriptedCall, ScriptResponse

if TYPE_CHECKING:
    from pathlib import Path


def loaded(directory: Path, response: str) -> ScriptResponse:
    path = directory / "scenario.toml"
    path.write_text(f"default_response = {response}", encoding="utf-8")
    found = load_script(path).default_response
    assert found is not None
    return found


def refused(directory: Path, reference: str) -> str:
    with pytest.raises(ScriptError) as caught:
        loaded(directory, f'{{ json = {{ "$file" = {json.dumps(reference)} }} }}')
    (problem,) = caught.value.problems
    assert problem.field_name == "default_response.json.$file"
    assert problem.position == SourcePosition(1, 31)
    return problem.message


def test_files_are_found_anywhere_inside_an_input(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.json").write_text('{"n": [1, null]}', encoding="utf-8")
    (tmp_path / "b.txt").write_text("two\nlinés", encoding="utf-8")
    response = loaded(
        tmp_path,
        """{ tool_calls = [
            { tool = "t", input = { x = [{ "$file" = "parts/a.json" }], y = { "$file" = "b.txt" } } },
            { tool = "u", input = { "$file" = "parts/../parts/a.json" } },
        ] }""",
    )
    assert response.tool_calls == (
        ScriptedCall("t", {"x": [{"n": [1, None]}], "y": "two\nlinés"}),
        ScriptedCall("u", {"n": [1, None]}),
    )


def test_the_text_of_an_answer_may_be_a_file_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1, 2]", encoding="utf-8")
    assert loaded(tmp_path, '{ text = { "$file" = "a.json" } }') == ScriptResponse("[1, 2]")


def test_a_json_file_refers_to_files_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    path = tmp_path / "scenario.json"
    path.write_text('{"default_response": {"json": [{"$file": "a.txt"}]}}', encoding="utf-8")
    assert load_script(path).default_response == ScriptResponse('["text"]')


def test_what_is_in_a_file_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"$file": "a.json", "$json": 1}', encoding="utf-8")
    (tmp_path / "b.json").write_text('{"$file": "b.json"}', encoding="utf-8")
    assert loaded(tmp_path, '{ json = { "$file" = "a.json" } }').text == '{"$file":"a.json","$json":1}'
    assert loaded(tmp_path, '{ json = { "$file" = "b.json" } }').text == '{"$file":"b.json"}'


def test_a_table_with_other_keys_is_no_reference(tmp_path: Path) -> None:
    assert loaded(tmp_path, '{ json = { "$file" = "a.json", b = 1 } }').text == '{"$file":"a.json","b":1}'


@pytest.mark.parametrize("reference", ["/etc/passwd", "../outside.txt", "parts/../../outside.txt", ".."])
def test_nothing_outside_the_directory_is_read(tmp_path: Path, reference: str) -> None:
    (tmp_path / "outside.txt").write_text("not for you", encoding="utf-8")
    inside = tmp_path / "inside"
    (inside / "parts").mkdir(parents=True)
    assert refused(inside, reference) == (
        f"{reference!r} is outside the directory of the script; move it there"
    )


def test_a_link_that_leads_outside_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("not for you", encoding="utf-8")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.txt").symlink_to(tmp_path / "outside.txt")
    (inside / "folder").symlink_to(tmp_path)
    assert "is outside the directory" in refused(inside, "link.txt")
    assert "is outside the directory" in refused(inside, "folder/outside.txt")


def test_a_directory_that_is_a_link_itself_has_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("text", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert loaded(tmp_path / "link", '{ text = { "$file" = "a.txt" } }') == ScriptResponse("text")


def test_a_missing_file_is_told_with_its_place(tmp_path: Path) -> None:
    assert refused(tmp_path, "gone.json") == f"'gone.json' does not exist in {tmp_path}"
    assert refused(tmp_path, "") == f"'' does not exist in {tmp_path}"


def test_a_name_that_is_none_is_told(tmp_path: Path) -> None:
    assert "cannot be read: " in refused(tmp_path, "a\0b")
    assert "cannot be read: " in refused(tmp_path, "a" * 5000)


def test_content_that_is_no_text_or_no_json_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe")
    assert refused(tmp_path, "a.bin") == "'a.bin' is not UTF-8 text"
    (tmp_path / "a.json").write_text('{\n "a": }', encoding="utf-8")
    assert refused(tmp_path, "a.json") == "a.json:2:7: not valid JSON: Expecting value"


def test_a_value_in_a_file_has_to_be_json_too(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[NaN]", encoding="utf-8")
    with pytest.raises(ScriptError) as caught:
        loaded(tmp_path, '{ json = { "$file" = "a.json" } }')
    (problem,) = caught.value.problems
    assert (problem.field_name, problem.message) == ("default_response.json[0]", "nan is not a JSON number")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_BYTES", 2 * 2**20)
    (tmp_path / "a.txt").write_bytes(b"x" * (2 * 2**20))
    (tmp_path / "b.txt").write_bytes(b"x" * (2 * 2**20 + 1))
    assert len(loaded(tmp_path, '{ text = { "$file" = "a.txt" } }').text) == 2 * 2**20
    assert refused(tmp_path, "b.txt") == "'b.txt' is larger than 2 MiB"


def test_a_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    found = sources.ReferencedFiles(tmp_path)
    assert found.read_text("a.txt") == "one"
    (tmp_path / "a.txt").write_text("two", encoding="utf-8")
    assert found.read_text("a.txt") == "one"


def test_the_name_of_a_file_is_text(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="expected text, not 5"):
        loaded(tmp_path, '{ json = { "$file" = 5 } }')


def test_a_scenario_without_a_directory_has_no_files() -> None:
    with pytest.raises(ScriptError, match="needs a script that was read from a file"):
        parse_script('default_response.text = { "$file" = "a.txt" }')
