"""Text input from users, and text output that is safe for a terminal."""

from __future__ import annotations

import sys

from peripety.errors import FieldViolation, InvalidArgumentError

__all__ = ["MAX_INPUT_BYTES", "in_one_line", "printable", "read_text"]

MAX_INPUT_BYTES = 1024 * 1024

_SHOWN_AS_IS = "\t\n"
_CONTROL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in [*range(32), *range(127, 160)]
    if chr(code) not in _SHOWN_AS_IS
}


def printable(text: str) -> str:
    """Replace control characters: untrusted text must not control the terminal."""
    return text.translate(_CONTROL)


def in_one_line(text: str) -> str:
    """Replace control characters and line breaks: untrusted text must not imitate other output lines."""
    return " ".join(printable(text).splitlines())


def read_text(given: str, name: str) -> str:
    """Return the text of an argument: itself, or standard input for `-`.

    Args:
        given: the argument.
        name: its name on the command line.

    Raises:
        InvalidArgumentError: the text is not UTF-8, or exceeds the size limit.
    """
    content = (
        sys.stdin.buffer.read(MAX_INPUT_BYTES + 1) if given == "-" else given.encode(errors="surrogateescape")
    )
    if len(content) > MAX_INPUT_BYTES:
        raise _unusable(name, "is longer than 1 MiB; the limit is 100 KiB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise _unusable(name, f"is not UTF-8 (byte {error.start + 1}); save or convert it as UTF-8") from None


def _unusable(name: str, reason: str) -> InvalidArgumentError:
    violation = FieldViolation(name, reason)
    return InvalidArgumentError(f"{name} {reason}", code="BAD_TEXT", violations=[violation])
