"""The JSON values of a stream, as its bytes arrive: server-sent events, lines, or the items of an array."""

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
    """How values stand in bytes; what is no JSON, such as `[DONE]`, is given as text."""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take bytes, and give what they complete."""
        ...

    def close(self) -> Iterator[Any]:
        """Take the end, and give what it completes."""
        ...


class Events(Framing):
    """The data of server-sent events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take bytes, and give what they complete."""
        *events, self._rest = _BLANK.split(self._rest + data)
        for event in events:
            lines = [
                line[5:].removeprefix(b" ") for line in _NEWLINE.split(event) if line.startswith(b"data:")
            ]
            if lines:
                yield _value(b"\n".join(lines))

    def close(self) -> Iterator[Any]:
        """Give nothing: an event without its end is none."""
        return iter(())


class Lines(Framing):
    """The values of lines of JSON."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take bytes, and give what they complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from (_value(line) for line in lines if line.strip())

    def close(self) -> Iterator[Any]:
        """Give the last line, if its end is missing."""
        yield from (_value(line) for line in (self._rest,) if line.strip())


class Whole(Framing):
    """A document; of an array, its items."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take bytes, and give nothing before the end."""
        self._data += data
        return iter(())

    def close(self) -> Iterator[Any]:
        """Give the document."""
        value = _value(bytes(self._data))
        return iter(value if isinstance(value, list) else (value,))


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace").strip()
