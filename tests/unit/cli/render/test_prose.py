"""Prose that is wrapped while it arrives."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from peripety.cli.render.prose import ProseWriter, print_parts, print_prose


class Screen:
    """A console with its captured output."""

    def __init__(self, width: int) -> None:
        self.stream = io.StringIO()
        self.out = Console(file=self.stream, width=width, soft_wrap=True, highlight=False, markup=False)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


TEXT = "A first sentence of several words. A second one, “quoted”, follows it.\n\nA new paragraph."


@pytest.mark.parametrize("width", [20, 37, 60])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_pieces_of_any_size_are_wrapped_as_the_whole(width: int, size: int) -> None:
    whole, pieces = Screen(width), Screen(width)
    print_prose(whole.out, TEXT)
    writer = ProseWriter(pieces.out)
    for start in range(0, len(TEXT), size):
        writer.write(TEXT[start : start + size])
    writer.end()
    assert pieces.lines == whole.lines
    assert max(map(len, whole.lines)) <= width
    assert " ".join(" ".join(whole.lines).split()) == " ".join(TEXT.split())
    assert "" in whole.lines


def test_a_word_waits_until_it_is_complete() -> None:
    screen = Screen(20)
    writer = ProseWriter(screen.out)
    writer.write("one tw")
    assert screen.lines == ["one"]
    writer.write("o three")
    writer.end()
    assert screen.lines == ["one two three"]


def test_scripts_without_spaces_are_wrapped_by_character_and_keep_their_punctuation() -> None:
    screen = Screen(10)
    print_prose(screen.out, "一二三四五\N{FULLWIDTH COMMA}六七八九十。")
    assert screen.lines == ["一二三四", "五\N{FULLWIDTH COMMA}六七八", "九十。"]
    assert all(cell_len(line) <= 10 for line in screen.lines)


def test_a_word_that_is_longer_than_a_line_is_broken() -> None:
    screen = Screen(10)
    print_prose(screen.out, f"a {'b' * 25} c")
    assert screen.lines == ["a", "b" * 10, "b" * 10, "b" * 5 + " c"]


def test_lines_are_at_most_a_hundred_columns_long() -> None:
    screen = Screen(200)
    print_prose(screen.out, "word " * 60)
    assert max(map(len, screen.lines)) <= 100


def test_parts_stay_together() -> None:
    screen = Screen(20)
    print_parts(screen.out, ["Alpha +1", "Beta \N{MINUS SIGN}2", "Gamma ray +3"])
    assert screen.lines == ["Alpha +1 · Beta \N{MINUS SIGN}2", "Gamma ray +3"]


def test_control_characters_are_not_printed() -> None:
    screen = Screen(40)
    print_prose(screen.out, "[bold]x[/bold] \x1b[31m:smile:")
    assert screen.lines == ["[bold]x[/bold] \ufffd[31m:smile:"]
