"""Text on its way in and out of the command line."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from peripety.cli.output import (
    MAX_INPUT_BYTES,
    deadline_of,
    explain_error,
    make_budget,
    one_line,
    printable,
    read_text_argument,
)
from peripety.errors import InvalidArgumentError


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.mark.parametrize(
    "text",
    ["", "plain", "both \"quotes\" and 'quotes'", "שלום עולם", "🏴‍☠️🙂", "a\nb\tc", "x" * 100_000],
)
def test_any_text_comes_through_unchanged(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert read_text_argument(text, "--description") == text
    stdin(monkeypatch, text.encode())
    assert read_text_argument("-", "--description") == text


def test_bytes_that_are_not_utf8_are_named_by_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"abc\xff")
    with pytest.raises(InvalidArgumentError, match=r"not UTF-8 \(byte 4\)") as raised:
        read_text_argument("-", "--description")
    assert raised.value.violations[0].field == "--description"
    assert raised.value.message.startswith("--description")


def test_an_argument_of_other_bytes_is_refused_too() -> None:
    with pytest.raises(InvalidArgumentError, match="not UTF-8"):
        read_text_argument(b"abc\xff".decode(errors="surrogateescape"), "--description")


def test_input_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        asked = 0

        def read(self, count: int) -> bytes:
            self.asked += count
            return b"a" * count

    endless = Endless()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=endless))
    with pytest.raises(InvalidArgumentError, match="longer than 1 MiB"):
        read_text_argument("-", "--description")
    assert endless.asked <= MAX_INPUT_BYTES + 1


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\x9bc") == "a\ufffd[2Jb\ufffd\ufffdc"
    assert printable("line\n\tindent é 🙂 א") == "line\n\tindent é 🙂 א"


def test_text_of_a_stranger_does_not_look_like_a_line_of_ours() -> None:
    assert one_line("a: certified\nb\u2028c\x07") == "a: certified b c\N{REPLACEMENT CHARACTER}"


def test_a_call_ends_after_the_time_limit_of_its_budget_and_not_before() -> None:
    assert deadline_of(make_budget(seconds=1_000)) == 1_060
    assert deadline_of(make_budget(tokens=5)) == 86_400


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("session_id: unknown session 'x'", "unknown session 'x'"),
        ("call.arguments_json is not JSON", "arguments json is not JSON"),
        ("the file is empty", "the file is empty"),
    ],
)
def test_a_field_that_a_message_begins_with_is_named_by_its_last_word(
    message: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    explain_error(InvalidArgumentError(message))
    assert capsys.readouterr().err.startswith(f"error: {told} (")
