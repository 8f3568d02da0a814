"""Incremental parsers of JSON streams: server-sent events, lines, or the items of an array."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Events", "Framing", "Lines", "Whole"]

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_NEWLINE = re.compile(rb"\r\n|\n|\r")


class Framing(Protocol):
    """Incremental parser of JSON values. Data that is not JSON, such as `[DONE]`, is returned as text."""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Parse bytes, and yield the completed values."""
        ...

    def close(self) -> Iterator[Any]:
        """Parse the end, and yield the completed values."""
        ...


class Events(Framing):
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
                yield _value(b"\n".join(lines))

    def close(self) -> Iterator[Any]:
        """Yield nothing: an event without its end is incomplete."""
        return iter(())


class Lines(Framing):
    """Parser of JSON lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Parse bytes, and yield the completed values."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from (_value(line) for line in lines if line.strip())

    def close(self) -> Iterator[Any]:
        """Yield the last line if it has no line end."""
        yield from (_value(line) for line in (self._rest,) if line.strip())


class Whole(Framing):
    """Parser of a document; of an array, its items."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Collect bytes, and yield nothing before the end."""
        self._data += data
        return iter(())

    def close(self) -> Iterator[Any]:
        """Yield the document."""
        value = _value(bytes(self._data))
        return iter(value if isinstance(value, list) else (value,))


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace").strip()
