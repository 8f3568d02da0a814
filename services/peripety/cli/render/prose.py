"""Texts that are formatted while they arrive: prose is wrapped, and Markdown is rendered block by block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.markdown import Markdown
from rich.text import Text

from peripety.cli.output import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


_MAX_WIDTH = 100
# Scripts that are written without spaces break after any character, but not before closing punctuation.
_WIDE = "\u2e80-\u33ff\u3400-\u9fff\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6"
_CLOSING = (
    "\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff1f\uff01\u300d"
    "\u300f\uff09\u3011\u300b\u3009\u201d\u2019\u2026!?.,;:"
)
_UNIT = re.compile(rf"\n+|[^\S\n]+|[{_WIDE}][{_CLOSING}]*|[^\s{_WIDE}]+")


def line_width(out: Console) -> int:
    """Return the width of lines of text: that of the console, at most 100 columns, which are easy to read."""
    return min(out.width, _MAX_WIDTH)


class ProseWriter:
    """Writer of wrapped text, which may arrive in pieces of any size.

    Args:
        out: the console.
        style: the style of the text.
    """

    def __init__(self, out: Console, style: str = "") -> None:
        self._out = out
        self._style = style
        self._pending = ""
        self._column = 0
        self._space = ""

    def write(self, text: str) -> None:
        """Write a piece. The last word waits for what follows."""
        units = _UNIT.findall(self._pending + printable(text))
        self._pending = units.pop() if units else ""
        self._put_all(units)

    def end(self) -> None:
        """Write what is left, and end the line."""
        self._put_all([self._pending.rstrip()] if self._pending.strip() else [])
        if self._column:
            self._print("\n")
        self._pending = self._space = ""
        self._column = 0

    def _put_all(self, units: list[str]) -> None:
        text = "".join(map(self._place, units))
        if text:
            self._print(text)
            self._out.file.flush()

    def _place(self, unit: str) -> str:
        """Return what a unit adds to the text, and move to the column after it."""
        if unit.startswith("\n"):
            lines = "\n" * min(len(unit), 2) if self._column else ""
            self._column, self._space = 0, ""
            return lines
        if unit.isspace():
            self._space = " "
            return ""
        width, limit = cell_len(unit), line_width(self._out)
        is_full = bool(self._column) and self._column + len(self._space) + width > limit
        lead = "\n" if is_full else self._space if self._column else ""
        start = 0 if is_full else self._column + len(lead)
        pieces = chop_cells(unit, limit) if width > limit else [unit]
        self._column = cell_len(pieces[-1]) + (start if len(pieces) == 1 else 0)
        self._space = ""
        return lead + "\n".join(pieces)

    def _print(self, text: str) -> None:
        self._out.print(Text(text, style=self._style), end="")


def print_prose(out: Console, text: str, style: str = "") -> None:
    """Print a whole text, wrapped."""
    writer = ProseWriter(out, style)
    writer.write(f"{text}\n")
    writer.end()


def print_parts(out: Console, parts: list[str], style: str = "") -> None:
    """Print short parts with dots between them; a line that is full ends after a part."""
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]} · {part}" if lines else part
        if lines and cell_len(joined) <= line_width(out):
            lines[-1] = joined
        else:
            lines.append(part)
    for line in lines:
        print_prose(out, line, style)


_FENCES = ("```", "~~~")


class MarkdownWriter:
    """Writer of a text in pieces: rendered on a terminal, and unchanged elsewhere.

    On a terminal, a block is printed when it is complete: at a blank line outside of a code block. Until
    then a spinner shows that more is to come.

    Args:
        out: the console.
    """

    def __init__(self, out: Console) -> None:
        self._out = out
        self._pending = ""
        self._spinner: Status | None = None

    def wait(self) -> None:
        """Show a spinner until the next block."""
        if self._out.is_terminal and self._spinner is None:
            self._spinner = self._out.status("…", spinner="dots")
            self._spinner.start()

    def write(self, text: str) -> None:
        """Write a piece."""
        if not self._out.is_terminal:
            self._out.print(printable(text), end="")
            return
        self._pending += printable(text)
        *complete, self._pending = split_blocks(self._pending)
        for block in complete:
            self._print(block)
        self.wait()

    def end(self) -> None:
        """Write what is left, and end the line."""
        self.stop_waiting()
        if not self._out.is_terminal:
            self._out.print()
        elif self._pending.strip():
            self._print(self._pending)
        self._pending = ""

    def stop_waiting(self) -> None:
        """Remove the spinner."""
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def _print(self, block: str) -> None:
        if block.strip():
            self.stop_waiting()
            self._out.print(Markdown(block), soft_wrap=False, width=line_width(self._out))
            self._out.print()


def split_blocks(text: str) -> list[str]:
    """Split Markdown at the blank lines outside of code blocks; the last block may be incomplete."""
    blocks = [""]
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
        elif line.endswith("\n") and not line.strip():
            blocks.append("")
            continue
        blocks[-1] += line
    return blocks
