"""Structured logs on standard error: key=value on a terminal, JSON lines elsewhere.

    _log = logging.getLogger(__name__)
    _log.info("call", extra={"method": name, "ms": 12})

Events contain ids, codes and durations. Prompts, responses, documents and the texts of unexpected exceptions
are not logged, as they may quote user input or a key. Of an exception, the type and the stack locations are
logged.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.core import call_context
from peripety.core.config import LogFormat

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from peripety.core.config import Config


_FRAMES = 12
_OWN_LOGGER = "peripety"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"asctime", "message"}  # the last two: formatters
_PLAIN = re.compile(r"[^\s\"=\\]+", re.ASCII)


def configure(config: Config, stream: TextIO | None = None) -> None:
    """Configure the logs of this process, including those of libraries.

    Args:
        config: sets level and format.
        stream: output, standard error by default; never standard output, which is for results.
    """
    stream = stream or sys.stderr
    level = logging.getLevelNamesMapping()[config.log_level.name]
    terminal = config.log_format is LogFormat.AUTO and stream.isatty()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter(_logfmt if terminal or config.log_format is LogFormat.CONSOLE else _json))
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    logging.getLogger(_OWN_LOGGER).setLevel(level)


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return what may be logged of an exception: its type and stack locations, never its text."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return {
        "exception": type(error).__qualname__,
        "at": [f"{frame.filename}:{frame.lineno}:{frame.name}" for frame in frames],
    }


class _Formatter(logging.Formatter):
    """Formatter that writes an event as one line."""

    def __init__(self, render: Callable[[dict[str, Any]], str]) -> None:
        super().__init__()
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        return self._render(_event(record))


def _event(record: logging.LogRecord) -> dict[str, Any]:
    moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
    event: dict[str, Any] = {
        "timestamp": moment.isoformat(timespec="microseconds") + "Z",
        "level": record.levelname.lower(),
        "event": record.getMessage(),
    }
    request_id = call_context.request_id()
    if request_id is not None:
        event["request_id"] = request_id
    if record.name.partition(".")[0] == _OWN_LOGGER:  # extra fields of libraries may contain anything
        event |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if record.exc_info and record.exc_info[1]:
        event |= describe_error(record.exc_info[1])
    return event


def _json(event: dict[str, Any]) -> str:
    return json.dumps(event, default=repr)


def _logfmt(event: dict[str, Any]) -> str:
    return " ".join(f"{name}={_quoted(value)}" for name, value in event.items())


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    return text if _PLAIN.fullmatch(text) and text.isprintable() else json.dumps(text)
