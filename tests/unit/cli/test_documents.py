"""Which documents a file holds."""

from __future__ import annotations

import io

import pytest

from peripety.cli.input_documents import InputDocument, iterate_documents
from peripety.cli.output import MAX_INPUT_BYTES


def found(source: str, content: bytes) -> list[tuple[int | None, bytes]]:
    return [(document.line, document.content) for document in iterate_documents(source, io.BytesIO(content))]


@pytest.mark.parametrize(
    "content",
    [b"{}", b"{}\n", b"{}\n\n\n", b'{\n  "a": 1\n}\n', b"", b"\xff", b"[1,\n2]"],
)
def test_a_document_alone_is_one(content: bytes) -> None:
    assert found("-", content) == [(None, content)]


def test_lines_that_are_documents_are_many() -> None:
    assert found("-", b"{}\n[1]\n\nbroken\n{}") == [(1, b"{}\n"), (2, b"[1]\n"), (4, b"broken\n"), (5, b"{}")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
def test_the_name_says_lines(name: str) -> None:
    assert found(name, b"{\n1}\n") == [(1, b"{\n"), (2, b"1}\n")]


def test_the_name_says_one_document() -> None:
    assert found("a.json", b"{}\n{}\n") == [(None, b"{}\n{}\n")]


def test_a_document_that_is_too_large_is_cut_beyond_the_limit() -> None:
    ((_, content),) = found("a.json", b"[" + b" " * (3 * MAX_INPUT_BYTES))
    assert len(content) == MAX_INPUT_BYTES + 1


def test_a_line_that_is_too_large_is_cut_and_the_next_one_is_read() -> None:
    lines = found("a.jsonl", b"x" * (3 * MAX_INPUT_BYTES) + b"\n{}\n")
    assert [(number, len(content)) for number, content in lines] == [(1, MAX_INPUT_BYTES + 1), (2, 3)]


def test_documents_come_as_they_are_read() -> None:
    class Stream(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise AssertionError("a stream of lines must not be read whole")

    lines = iterate_documents("-", Stream(b"{}\n{}\n{}\n"))
    assert next(lines) == InputDocument("-", 1, b"{}\n")
