"""Structured logs on standard error: key=value on a terminal, JSON lines anywhere else.

Events carry ids, codes and durations. Prompts, answers, documents and the texts of unexpected exceptions are
not logged: they may quote what a user wrote, or a key. Of an exception, type and places are kept.
"""

from __future__ import annotations

import logging
import sys
import traceback
from typing import TYPE_CHECKING, Any

import structlog

from peripety import context
from peripety.config import LogFormat

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from structlog.typing import EventDict, Processor, WrappedLogger

    from peripety.config import Config

__all__ = ["configure", "outline"]

_FRAMES = 12


def configure(config: Config, stream: TextIO = sys.stderr) -> None:
    """Set up the logs of this process, those of libraries included.

    Args:
        config: says how much is written, and in which form.
        stream: where to; never standard output, which belongs to results.
    """
    level = logging.getLevelNamesMapping()[config.log_level.name]
    renderer = _renderer(config.log_format, stream)
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
        _reduce_exception,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
    )
    _configure_libraries(max(level, logging.WARNING), stream, shared, renderer)


def outline(error: BaseException) -> dict[str, Any]:
    """Return what may be logged of an exception: its type and where it passed, never its text."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return {
        "exception": type(error).__qualname__,
        "at": [f"{frame.filename}:{frame.lineno}:{frame.name}" for frame in frames],
    }


def _configure_libraries(
    level: int, stream: TextIO, shared: Iterable[Processor], renderer: Processor
) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
            keep_exc_info=False,
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)


def _renderer(form: LogFormat, stream: TextIO) -> Processor:
    if form is LogFormat.CONSOLE or (form is LogFormat.AUTO and stream.isatty()):
        return structlog.processors.LogfmtRenderer(
            key_order=("timestamp", "level", "event"), bool_as_flag=False
        )
    return structlog.processors.JSONRenderer()


def _add_request_id(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    request_id = context.request_id()
    if request_id is not None:
        event.setdefault("request_id", request_id)
    return event


def _reduce_exception(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    given = event.pop("exc_info", None)
    error = given[1] if isinstance(given, tuple) else sys.exception() if given is True else given
    if isinstance(error, BaseException):
        event.update(outline(error))
    return event
