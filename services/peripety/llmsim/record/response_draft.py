"""Draft of a provider's answer while it is read: parts, stop reason, usage and chunk times.

The parsers are incremental: server-sent events, lines, or the items of a JSON array. An error of the
provider becomes the fault whose emulated error is most similar.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol

from peripety.llmsim.faults.injection import fault_error
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.script.types import Fault
from peripety.llmsim.types import (
    BilledUsage,
    ReasoningPart,
    RefusalPart,
    RetryForm,
    SimReply,
    SimStopReason,
    TextPart,
    ToolUsePart,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.llmsim.types import ReplyPart
    from peripety.llmsim.wire.base import Wire


_SERVER_ERROR_STATUS = 500
_ERRORS = tuple(name for name, kind in KINDS.items() if kind.stage is FaultStage.ERROR)
_DELAY_PATTERN = re.compile(r'"retryDelay"\s*:\s*"([\d.]+)s"')
_IGNORED_MEMBERS = frozenset({"message", "request_id"})


def fault_for_error(wire: Wire, status: int, headers: Mapping[str, str], body: bytes, now: float) -> Fault:
    """Return the fault for an error response.

    Args:
        wire: the API of the error.
        status: the HTTP status.
        headers: the headers, names in lower case.
        body: the body.
        now: seconds since 1970, for retry dates.
    """
    try:
        value = json.loads(body)
    except ValueError:
        if status >= _SERVER_ERROR_STATUS:
            return _make_fault("html_error", status=status)
        value = {"error": body.decode(errors="replace")[:200]}
    name = _most_similar(wire, _ERRORS, value, status)
    settings: dict[str, Any] = {"message": _find_message(value)}
    if name == "server_error":
        settings["status"] = status
    if "retry_after" in KINDS[name].settings:
        settings |= _retry_settings(name, headers, body.decode(errors="replace"), now)
    return _make_fault(name, **settings)


def fault_for_embedded_error(wire: Wire, value: Any, chunks: int, *, stream: bool) -> Fault:
    """Return the fault for an error inside a successful response.

    Args:
        wire: the API of the error.
        value: the error.
        chunks: number of content chunks before it.
        stream: True if the answer is streamed.
    """
    choices = KINDS["error_in_stream"].settings["error"].choices
    settings = {"error": _most_similar(wire, choices, value, None), "message": _find_message(value)}
    if not stream:
        return _make_fault("error_in_200", **settings)
    return _make_fault("error_in_stream", after_chunks=chunks, **settings)


def _make_fault(name: str, **settings: Any) -> Fault:
    return Fault(name, {**KINDS[name].default_settings, **settings})


def _most_similar(wire: Wire, names: Iterable[str], value: Any, status: int | None) -> str:
    """Return the kind with the most similar error among those with the same status."""
    found = set(_leaf_values(value))
    at_fault = status is not None and status >= _SERVER_ERROR_STATUS
    best, most = "overloaded", 0.0
    if status is not None:
        best, most = "server_error" if at_fault else "invalid_request", float("-inf")
    # A server error accepts any status, so it is tried last.
    for name in sorted(names, key="server_error".__eq__):
        told = {"status": status} if name == "server_error" and at_fault else {}
        error = fault_error(_make_fault(name, **told), stream=False)
        if error is None:
            continue
        written = wire.error(error, "", now=0)
        leaves = set(_leaf_values(json.loads(written.body)))
        likeness = len(found & leaves) - len(leaves - found)
        if status in {None, error.status or written.status} and likeness > most:
            best, most = name, likeness
    return best


def _leaf_values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            for key, each in value.items():
                if key not in _IGNORED_MEMBERS:
                    yield from _leaf_values(each, key)
        case list():
            for each in value:
                yield from _leaf_values(each, name)
        case _:
            yield name, value


def _find_message(value: Any) -> str:
    while isinstance(value, list) and value:
        value = value[0]
    error = value.get("error", value) if isinstance(value, dict) else value
    message = error.get("message", error) if isinstance(error, dict) else error
    return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)


def _retry_settings(name: str, headers: Mapping[str, str], body: str, now: float) -> dict[str, Any]:
    """Return the retry settings; a delay of 0 if the fault requires one and the provider sent none."""
    milliseconds, after = headers.get("retry-after-ms"), headers.get("retry-after")
    if milliseconds is not None:
        return {"retry_after": float(milliseconds) / 1000, "form": RetryForm.MILLISECONDS.value}
    if after is not None:
        try:
            return {"retry_after": float(after)}
        except ValueError:
            seconds = max(0.0, parsedate_to_datetime(after).timestamp() - now)
            return {"retry_after": float(round(seconds)), "form": RetryForm.DATE.value}
    if delay := _DELAY_PATTERN.search(body):
        return {"retry_after": float(delay[1])}
    return {"retry_after": 0.0} if KINDS[name].default_settings["retry_after"] is not None else {}


class ResponseDraft:
    """The answer so far.

    Attributes:
        id: the id of the answer, without the prefix of the API.
        parts: the content.
        stop: the stop reason; None while the answer is in progress.
        stop_sequence: the matched stop sequence, if the API reports it.
        usage: the token usage, if the API reports it.
        ended: True if the end marker has arrived.
        error: the error that ended the answer, in the format of the API.
        now_ms: the time of the current bytes, in milliseconds after the request.
        chunk_times: the time of each content chunk.
    """

    def __init__(self) -> None:
        self.id = ""
        self.parts: list[ReplyPart] = []
        self.stop: SimStopReason | None = None
        self.stop_sequence: str | None = None
        self.usage: BilledUsage | None = None
        self.ended = False
        self.error: Any = None
        self.now_ms = 0.0
        self.chunk_times: list[float] = []
        self._unknown = False

    def add_text(self, piece: str | None) -> None:
        """Append prose."""
        if piece:
            self._add_part(TextPart((piece,)))

    def add_reasoning(self, piece: str | None) -> None:
        """Append reasoning."""
        if piece:
            self._add_part(ReasoningPart((piece,), ""))

    def add_refusal(self, piece: str | None) -> None:
        """Append to the refusal."""
        if piece:
            self._add_part(RefusalPart((piece,)))

    def begin_call(self, name: str, call_id: str = "") -> None:
        """Start a tool call."""
        self._unknown = False
        self.parts.append(ToolUsePart(call_id, name, ()))

    def begin_unknown(self) -> None:
        """Start a part that scripts cannot express; the arguments that follow belong to it."""
        self._unknown = True

    def add_arguments(self, piece: str | None, call: int = -1) -> None:
        """Append to the arguments of a tool call, by default the latest.

        Raises:
            ValueError: the call does not exist.
        """
        calls = [place for place, part in enumerate(self.parts) if isinstance(part, ToolUsePart)]
        if not piece or (self._unknown and call < 0):
            return
        if not -len(calls) <= call < len(calls):
            raise ValueError("tool call arguments arrived before their tool call")
        place = calls[call]
        self.parts[place] = replace(self.parts[place], pieces=(*self.parts[place].pieces, piece))
        self.chunk_times.append(self.now_ms)

    def to_reply(self, model: str) -> SimReply:
        """Return the answer as a reply."""
        stop = SimStopReason.END if self.stop is None else self.stop
        usage = BilledUsage() if self.usage is None else self.usage
        return SimReply(self.id, 0, model, tuple(self.parts), stop, usage, self.stop_sequence)

    def ends_with(self, kind: type[ReplyPart]) -> bool:
        """Return True if the latest part is of a type."""
        return bool(self.parts) and isinstance(self.parts[-1], kind)

    def has_calls(self) -> bool:
        """Return True if the answer has a tool call."""
        return any(isinstance(part, ToolUsePart) for part in self.parts)

    def _add_part(self, part: ReplyPart) -> None:
        self.chunk_times.append(self.now_ms)
        last = self.parts[-1] if self.parts else None
        if type(last) is type(part):
            self.parts[-1] = replace(last, pieces=(*last.pieces, *part.pieces))
        else:
            self.parts.append(part)


_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_NEWLINE = re.compile(rb"\r\n|\n|\r")


class JsonStreamParser(Protocol):
    """Incremental parser of JSON values. Data that is not JSON, such as `[DONE]`, is returned as text."""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Parse bytes, and yield the completed values."""
        ...

    def close(self) -> Iterator[Any]:
        """Parse the end, and yield the completed values."""
        ...


class SseParser(JsonStreamParser):
    """Parser of the data of server-sent events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Parse bytes, and yield the completed values."""
        *events, self._rest = _BLANK.split(self._rest + data)
        for event in events:
            lines = [
                line[5:].removeprefix(b" ") for line in _NEWLINE.split(event) if line.startswith(b"data:")
            ]
            if lines:
                yield _parse_or_text(b"\n".join(lines))

    def close(self) -> Iterator[Any]:
        """Yield nothing: an event without its end is incomplete."""
        return iter(())


class JsonLinesParser(JsonStreamParser):
    """Parser of JSON lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Parse bytes, and yield the completed values."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from (_parse_or_text(line) for line in lines if line.strip())

    def close(self) -> Iterator[Any]:
        """Yield the last line if it has no line end."""
        yield from (_parse_or_text(line) for line in (self._rest,) if line.strip())


class DocumentParser(JsonStreamParser):
    """Parser of a document; of an array, its items."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Collect bytes, and yield nothing before the end."""
        self._data += data
        return iter(())

    def close(self) -> Iterator[Any]:
        """Yield the document."""
        value = _parse_or_text(bytes(self._data))
        return iter(value if isinstance(value, list) else (value,))


def _parse_or_text(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace").strip()
