"""Text that comes in from a person and text that goes out to one."""

from __future__ import annotations

import sys

from peripety.errors import FieldViolation, InvalidArgumentError

__all__ = ["MAX_INPUT_BYTES", "in_one_line", "printable", "read_about"]

MAX_INPUT_BYTES = 1024 * 1024

_SHOWN_AS_IS = "\t\n"
_CONTROL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in [*range(32), *range(127, 160)]
    if chr(code) not in _SHOWN_AS_IS
}


def printable(text: str) -> str:
    """Replace control characters: text of a model or a stranger must not steer the terminal."""
    return text.translate(_CONTROL)


def in_one_line(text: str) -> str:
    """The same without line breaks: text of a stranger must not look like lines of ours."""
    return " ".join(printable(text).splitlines())


def read_about(about: str) -> str:
    """Return the description that `--about` stands for: the text itself, or standard input for `-`.

    Raises:
        InvalidArgumentError: it is not UTF-8, or longer than anything that could be meant.
    """
    given = (
        sys.stdin.buffer.read(MAX_INPUT_BYTES + 1) if about == "-" else about.encode(errors="surrogateescape")
    )
    if len(given) > MAX_INPUT_BYTES:
        raise _unusable("is longer than 1 MiB; describe the scenario in at most 100 KiB")
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        raise _unusable(f"is not UTF-8 (byte {error.start + 1}); save or convert it as UTF-8") from None


def _unusable(reason: str) -> InvalidArgumentError:
    violation = FieldViolation("--about", reason)
    return InvalidArgumentError(f"The description {reason}", code="BAD_DESCRIPTION", violations=[violation])
