"""Lines of a JSON document by JSON Pointer, so that findings can name the line of the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_shown: list[Callable[[str], int | None]] = []


def show_lines_of(document: bytes) -> None:
    """Let errors of this process about a specification name the lines of this document."""
    _shown[:] = [document_lines(document)]


def shown_lines() -> Callable[[str], int | None] | None:
    """Return the lines of the document that was read last; None without one."""
    return _shown[0] if _shown else None


def document_lines(document: bytes) -> Callable[[str], int | None]:
    """Return a function from a JSON Pointer to the line of a document, from 1.

    Where the pointer leads nowhere, the line is that of what is around it; None if the document is one line.
    """
    numbers: dict[str, int] = {}

    def find(pointer: str) -> int | None:
        if not numbers:
            numbers.update(_index_lines(document.decode(errors="replace")))
        while pointer and pointer not in numbers:
            pointer = pointer.rpartition("/")[0]
        return numbers.get(pointer) if len(set(numbers.values())) > 1 else None

    return find


def _index_lines(text: str) -> dict[str, int]:
    """Return the line of every value of a document, by its pointer, up to the first error."""
    numbers: dict[str, int] = {}
    containers: list[tuple[str, bool]] = []  # each with its pointer; True for an array
    positions: list[int | str | None] = []
    line, read = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", read, token.start())
        read = token.start()
        word = token.group()
        if word in {"}", "]"}:
            del containers[-1:], positions[-1:]
        elif word == ",":
            if containers:
                last = positions[-1]
                positions[-1] = last + 1 if isinstance(last, int) else None
        elif word == ":":
            continue
        elif containers and positions[-1] is None:
            positions[-1] = _segment(word)
            numbers[f"{containers[-1][0]}/{positions[-1]}"] = line
        else:
            pointer = f"{containers[-1][0]}/{positions[-1]}" if containers else ""
            numbers.setdefault(pointer, line)
            if word in {"{", "["}:
                containers.append((pointer, word == "["))
                positions.append(0 if word == "[" else None)
    return numbers


def _segment(key: str) -> str:
    """Return a key in quotes as a segment of a pointer."""
    text = _ESCAPE.sub(_unescape, key[1:-1])
    return text.replace("~", "~0").replace("/", "~1")


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code.startswith("u") and len(code) > 1:
        return chr(int(code[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(code, code)
