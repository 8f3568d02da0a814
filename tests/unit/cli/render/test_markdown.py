"""Markdown that arrives in pieces."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from peripety.cli.render.prose import MarkdownWriter, split_blocks

TEXT = "# Head\n\nSome **bold** words.\n\n```\na\n\nb\n```\n\n- one\n- two\n"


def written(*pieces: str, terminal: bool) -> str:
    stream = io.StringIO()
    out = Console(file=stream, width=60, soft_wrap=True, force_terminal=terminal, color_system=None)
    writer = MarkdownWriter(out)
    for piece in pieces:
        writer.write(piece)
    writer.end()
    return stream.getvalue()


def test_blocks_end_at_blank_lines_outside_of_code() -> None:
    assert split_blocks(TEXT) == [
        "# Head\n",
        "Some **bold** words.\n",
        "```\na\n\nb\n```\n",
        "- one\n- two\n",
    ]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_terminal_shows_it_rendered(size: int) -> None:
    shown = written(*(TEXT[start : start + size] for start in range(0, len(TEXT), size)), terminal=True)
    assert "Some bold words." in shown
    assert "**" not in shown
    assert "```" not in shown
    assert "• one" in shown


def test_elsewhere_it_is_unchanged() -> None:
    assert written("Some **bo", "ld** words.", terminal=False) == "Some **bold** words.\n"


def test_control_characters_are_not_printed() -> None:
    assert "\x1b[2J" not in written("a \x1b[2J b\n\n", terminal=True)
