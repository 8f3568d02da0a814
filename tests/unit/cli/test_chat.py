"""Messages of a chat: several lines, and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.cli.chat import include_files, join_lines
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("lines", "messages"),
    [
        (["a", "b"], ["a", "b"]),
        (["a\\", "b", "c"], ["a\nb", "c"]),
        (['"""', "a", "", "b", '"""', "c"], ["a\n\nb", "c"]),
        (['"""a', 'b"""'], ["a\nb"]),
        (['"""', "a"], ["a"]),
        (['say """ this'], ['say """ this']),
        ([], []),
    ],
)
def test_several_lines_are_one_message(lines: list[str], messages: list[str]) -> None:
    assert list(join_lines(lines)) == messages


def test_a_file_is_included_behind_the_message(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    assert (
        include_files(f"Read @{file}, please.") == f"Read @{file}, please.\n\n{file}:\n\n```\none\ntwo\n```"
    )


@pytest.mark.parametrize("message", ["mail me @home", "@", "@/", "plain"])
def test_a_word_that_names_no_file_stays_as_it_is(message: str) -> None:
    assert include_files(message) == message


@pytest.mark.parametrize(
    ("content", "problem"), [(b"\xff\xfe", "UTF-8"), (b"x" * (1024 * 1024 + 1), "1 MiB")]
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=problem):
        include_files(f"@{file}")
