from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.types import ApiError, ApiErrorKind
from peripety.llmsim.wire.base import block_cache_key, compact_json, parse_json, sse_comment, sse_event
from peripety.llmsim.wire.request_parser import Fields, JsonType, Path, bracketed_path, dotted_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Words:
    """Fake provider with one format for all error messages."""

    def not_json(self, reason: str) -> ApiError:
        return ApiError(ApiErrorKind.INVALID_REQUEST, f"not JSON: {reason}")

    def missing_member(self, path: Path) -> ApiError:
        return self._fault(path, "missing")

    def wrong_type(self, path: Path, wanted: Sequence[JsonType], value: Any) -> ApiError:
        return self._fault(path, f"not {'|'.join(wanted)} but {JsonType.of_value(value)}")

    def invalid_choice(self, path: Path, choices: Sequence[str], value: str) -> ApiError:
        return self._fault(path, f"{value} not in {list(choices)}")

    def unexpected_member(self, path: Path) -> ApiError:
        return self._fault(path, "unexpected")

    def _fault(self, path: Path, text: str) -> ApiError:
        return ApiError(
            ApiErrorKind.INVALID_REQUEST,
            f"{dotted_path(path)}: {text}",
            param=bracketed_path(path),
        )


def fields(value: Any) -> Fields:
    return Fields.parse(compact_json(value), Words())


def message(read: Callable[[], object]) -> str:
    with pytest.raises(ApiError) as caught:
        read()
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a":1} b',
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":1e400}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_what_is_not_one_finite_json_value_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_json(text)


def test_whitespace_around_a_value_is_ignored() -> None:
    assert parse_json(b'\r\n\t {"a": [1, 2.5, null]}\n') == {"a": [1, 2.5, None]}


def test_content_ignores_the_order_of_members_but_not_of_what_they_hold() -> None:
    first = {"type": "tool_use", "input": {"a": 1, "b": 2}}
    assert block_cache_key(first) == block_cache_key({"input": {"a": 1, "b": 2}, "type": "tool_use"})
    assert block_cache_key(first) != block_cache_key({"type": "tool_use", "input": {"b": 2, "a": 1}})


def test_content_leaves_out_what_it_is_told_to() -> None:
    assert block_cache_key({"text": "é", "cache_control": {}}, "cache_control") == '{"text":"é"}'.encode()


def test_members_are_read_by_type() -> None:
    read = fields({"t": "x", "i": 3, "n": 2, "f": 0.5, "b": True, "o": {"k": 1}, "l": ["a"]})
    assert read.text("t") == "x"
    assert read.integer("i") == 3
    assert read.number("n") == 2
    assert read.number("f") == 0.5
    assert read.flag("b") is True
    assert read.object("o").integer("k") == 1
    assert read.texts("l") == ["a"]
    assert read.choice("t", ("x", "y")) == "x"


def test_a_member_that_is_left_out_has_its_default() -> None:
    read = fields({})
    assert read.text("t", "") == ""
    assert read.object("o", None) is None
    assert read.choice("c", ("x",), None) is None
    assert read.objects("l", None) == []
    assert read.texts("l", None) == []


def test_null_is_accepted_where_the_default_is_none_and_nowhere_else() -> None:
    read = fields({"t": None})
    assert read.text("t", None) is None
    assert message(lambda: read.text("t", "")) == "t: not string but null"
    assert message(lambda: read.text("t")) == "t: not string but null"


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda f: f.text("no"), "no: missing"),
        (lambda f: f.integer("b"), "b: not integer but boolean"),
        (lambda f: f.number("b"), "b: not number but boolean"),
        (lambda f: f.integer("f"), "f: not integer but number"),
        (lambda f: f.get("b", JsonType.STRING, JsonType.ARRAY), "b: not string|array but boolean"),
        (lambda f: f.choice("t", ("a", "b")), "t: x not in ['a', 'b']"),
        (lambda f: f.texts("l"), "l.1: not string but integer"),
        (lambda f: f.objects("l"), "l.0: not object but string"),
        (lambda f: f.objects("o")[0].object("k").text("z"), "o.0.k.z: missing"),
        (lambda f: f.reject_others("b", "f", "t", "l"), "o: unexpected"),
    ],
)
def test_a_fault_names_its_place(read: Callable[[Fields], object], expected: str) -> None:
    value = fields({"b": False, "f": 0.5, "t": "x", "l": ["a", 1], "o": [{"k": {}}]})
    assert message(lambda: read(value)) == expected


def test_a_body_has_to_be_an_object() -> None:
    assert message(lambda: Fields.parse(b"[]", Words())) == ": not object but array"
    assert message(lambda: Fields.parse(b"{", Words())).startswith("not JSON: EOF")


def test_paths_are_written_in_both_ways() -> None:
    path: Path = ("messages", 0, "content", 1, "text")
    assert dotted_path(path) == "messages.0.content.1.text"
    assert bracketed_path(path) == "messages[0].content[1].text"


def test_events_are_written_with_and_without_names() -> None:
    assert sse_event(b"{}", "ping") == b"event: ping\ndata: {}\n\n"
    assert sse_event(b"{}") == b"data: {}\n\n"
    assert sse_event(b"{}", newline=b"\r\n") == b"data: {}\r\n\r\n"
    assert sse_comment("keep-alive") == b": keep-alive\n\n"
