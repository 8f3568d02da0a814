"""Lines of a document by JSON Pointer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety.cli.output import document_lines
from peripety.engine.schema_validation import format_pointer
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TEXT = b"""{
  "a": 1,
  "b": [
    {"c": "x, y: {", "d/e": 2}, 3,
    [
      "\\u0041\\"", {"\\u0066": null}
    ]
  ],
  "g": {}
}
"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("", 1),
        ("/a", 2),
        ("/b", 3),
        ("/b/0/c", 4),
        ("/b/0/d~1e", 4),
        ("/b/1", 4),
        ("/b/2", 5),
        ("/b/2/0", 6),
        ("/b/2/1/f", 6),
        ("/g", 9),
        ("/g/absent/deep", 9),
        ("/nothing", 1),
    ],
)
def test_every_value_has_its_line_and_what_is_absent_that_of_what_is_around_it(
    pointer: str, line: int
) -> None:
    assert document_lines(TEXT)(pointer) == line


def test_a_document_of_one_line_has_no_lines_to_name() -> None:
    assert document_lines(b'{"a": [1]}')("/a") is None


@pytest.mark.parametrize("text", [b"", b"\xff\n{", b'{"a": [1,\n', b"]]]\n}}", b'{"a"\n:,,,', b"a\nb: c\n"])
def test_what_is_no_document_has_some_line_or_none(text: bytes) -> None:
    assert document_lines(text)("/a/0") in {None, 1, 2}


def test_all_values_of_a_real_document_are_found() -> None:
    content = (ROOT / "examples" / "story.json").read_bytes()
    lines = document_lines(content)

    def check(value: object, path: tuple[str | int, ...]) -> None:
        line = lines(format_pointer(path))
        assert line is not None
        if path and isinstance(path[-1], str):
            assert json.dumps(path[-1]) in content.decode().splitlines()[line - 1]
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, inner in items:
            check(inner, (*path, key))

    check(json.loads(content), ())


def test_findings_of_a_file_name_its_lines(tmp_path: Path) -> None:
    from typer.testing import CliRunner  # noqa: PLC0415

    from peripety.cli.app import app  # noqa: PLC0415

    spec = json.loads((ROOT / "examples" / "long_way.json").read_bytes())
    spec["horizon"] = "long"
    file = tmp_path / "a.json"
    file.write_text(json.dumps(spec, indent=2))
    number = file.read_text().splitlines().index('  "horizon": "long",') + 1
    assert f" line {number} /horizon: " in CliRunner().invoke(app, ["validate", str(file)]).stdout
