"""Log contents: events, formats and redaction."""

from __future__ import annotations

import io
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core import call_context, logging_setup
from peripety.core.config import Config, LogFormat, LogLevel
from peripety.errors import InvalidArgumentError, PeripetyError
from support.servers.apps import config_for, service, serving, unary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from google.protobuf.wrappers_pb2 import StringValue


CANARY = "sk-canary-7391"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("peripety")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def _log() -> logging.Logger:
    return logging.getLogger("peripety.test")


def test_a_file_gets_one_json_object_a_line_whatever_the_values_hold() -> None:
    stream = io.StringIO()
    logging_setup.configure(Config(), stream)
    _log().info("done", extra={"a": 'two\nlines "quoted"', "b": 1})
    (line,) = _lines(stream)
    assert (line["event"], line["level"], line["a"], line["b"]) == ("done", "info", 'two\nlines "quoted"', 1)
    assert line["timestamp"].endswith("Z")


def test_a_terminal_gets_one_line_of_key_and_value_which_no_value_can_forge() -> None:
    stream = _Terminal()
    logging_setup.configure(Config(), stream)
    _log().info("done", extra={"a": "x\nlevel=error event=forged", "b": True})
    (line,) = stream.getvalue().splitlines()
    assert "level=info event=done" in line
    assert line.endswith("b=true")


@pytest.mark.parametrize(("form", "start"), [("json", "{"), ("console", "timestamp=")])
def test_the_form_can_be_chosen(form: str, start: str) -> None:
    for stream in (io.StringIO(), _Terminal()):
        logging_setup.configure(Config(log_format=LogFormat(form)), stream)
        _log().info("done")
        assert stream.getvalue().startswith(start)


def test_less_severe_events_than_asked_for_are_not_written() -> None:
    stream = io.StringIO()
    logging_setup.configure(Config(log_level=LogLevel.WARNING), stream)
    _log().info("quiet")
    _log().warning("loud")
    assert [line["event"] for line in _lines(stream)] == ["loud"]


def test_of_a_library_only_warnings_are_written_and_nothing_that_it_adds_to_them() -> None:
    stream = io.StringIO()
    logging_setup.configure(Config(log_level=LogLevel.DEBUG), stream)
    library = logging.getLogger("some.library")
    library.info("quiet")
    library.warning("loud %s", "enough", extra={"given": CANARY})
    (line,) = _lines(stream)
    assert line.keys() == {"timestamp", "level", "event"}
    assert (line["level"], line["event"]) == ("warning", "loud enough")


async def test_events_of_a_call_carry_its_request_id() -> None:
    stream = io.StringIO()
    logging_setup.configure(Config(), stream)
    call_context.begin_call(request_id="abc", timeout=None)
    _log().info("done")
    assert _lines(stream)[0]["request_id"] == "abc"


@pytest.mark.parametrize("library", [False, True])
def test_an_exception_is_its_type_and_places_never_its_text(library: bool) -> None:
    stream = io.StringIO()
    logging_setup.configure(Config(), stream)
    logger = logging.getLogger("some.library") if library else _log()
    try:
        int(CANARY)
    except ValueError:
        logger.exception("failed")
    (line,) = _lines(stream)
    assert line["exception"] == "ValueError"
    assert line["at"][0].endswith("test_an_exception_is_its_type_and_places_never_its_text")
    assert CANARY not in stream.getvalue()


async def test_no_secret_and_no_text_of_a_user_reaches_the_log_of_a_server(tmp_path: Path) -> None:
    async def crash(request: StringValue, _call: object) -> StringValue:
        raise ValueError(request.value)

    async def refuse(request: StringValue, _call: object) -> StringValue:
        raise InvalidArgumentError(f"{request.value} is wrong", details={"given": request.value})

    stream = io.StringIO()
    config = config_for(tmp_path, openai_api_key=CANARY, log_level="debug")
    logging_setup.configure(config, stream)
    methods = {"Crash": unary(crash), "Refuse": unary(refuse)}
    async with serving(config, service(**methods)) as (app, caller):
        for method in methods:
            with pytest.raises(PeripetyError):
                await caller.unary(
                    method,
                    CANARY,
                    metadata=(("authorization", CANARY), ("x-request-id", CANARY + "?")),
                )
        with pytest.raises(InvalidArgumentError):
            await caller.raw("Crash", b"\xff" + CANARY.encode())
    written = _lines(stream)
    assert [line["code"] for line in written if line["event"] == "call"] == ["INTERNAL"] + [
        "INVALID_ARGUMENT",
    ] * 2
    # gRPC's own loop may log events too.
    assert [line["address"] for line in written if line["event"] == "serving"] == [app.address]
    assert CANARY not in stream.getvalue()
