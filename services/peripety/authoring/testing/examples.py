"""Examples in a description: an input with its output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Example", "examples_in", "exit_code_in"]

_COMES_OUT = r"(?:prints?|writes?|outputs?|shows?|returns?|gives?|yields?|answers?|->|=>|→|⇒|becomes?)"
_QUOTED = r"`[^`\n]{1,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”"
_STATED = re.compile(
    rf"(?P<call>{_QUOTED}|(?:(?<=[\s,;:(])|^)[^\s`\"“,;:()][^`\"“,;:()\n]{{0,200}}?)"
    rf"(?P<on>\s+(?:on|from|as|via)\s+(?:its\s+|the\s+)?(?:standard\s+input|stdin))?"
    rf"\s+(?:must\s+|should\s+|has\s+to\s+|it\s+)?{_COMES_OUT}\s+"
    rf"(?P<out>{_QUOTED}|[^`\"“,;\n]{{1,200}}?)(?=[,;)\n]|\.(?:\s|$)|\s+and\s|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
_EXITS = re.compile(
    r"\bexits?(?:\s+(?:with|by))?(?:\s+(?:the|a|an))?(?:\s+(?:exit\s+)?(?:code|status))?(?:\s+(?:is|of))?\s+(\d{1,3})\b"
    r"|\b(?:exit|return)\s+(?:code|status)(?:\s+(?:is|of|must\s+be))?\s+(\d{1,3})\b",
    re.IGNORECASE,
)
_PROMPT = re.compile(r"^\s*(?:\$|>)\s+(?P<call>\S.*)$")
_LEADING = re.compile(r"^(?:for example|for instance|so|and|then|e\.g\.|that is|example)\s+", re.IGNORECASE)
_NOT_EXACT = re.compile(
    r"(?:a|an|the|its|their|his|her|all|each|every|any|some|one|how|what|which|whether|only|to|an?other|"
    r"exactly one|nothing else|as|in|on|out|up|back|it|them|that|this|no)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Example:
    """Example of a run.

    Attributes:
        given: the input.
        out: the exact output; None if unspecified.
        exit_code: the exit code; None if unspecified.
        is_quoted: True if the input is quoted in the text, not only inferred from its position.
        is_input: True if the input is read from standard input.
    """

    given: str
    out: str | None
    exit_code: int | None = None
    is_quoted: bool = True
    is_input: bool = False


def examples_in(text: str) -> list[Example]:
    """Return the examples in a text, in order, without duplicates."""
    return [*dict.fromkeys([*_stated(text), *_ends(text), *_session(text)])]


def exit_code_in(text: str) -> int | None:
    """Return the exit code in a text; None without one."""
    found = _EXITS.search(text)
    return int(found[1] or found[2]) if found else None


def _stated(text: str) -> Iterator[Example]:
    for found in _STATED.finditer(text):
        given, is_quoted = _unquoted(found["call"])
        out, is_exact = _unquoted(found["out"].strip())
        if not is_exact:
            if out.lower() == "nothing":
                out = ""
            elif _NOT_EXACT.match(out):
                continue
        rest = text[found.end() : found.end() + 80]
        ends = re.match(rf"\s*,?\s*and\s+(?={_EXITS.pattern})", rest, re.IGNORECASE)
        code = exit_code_in(rest[: rest.find("\n")] if "\n" in rest else rest) if ends else None
        yield Example(given, out, code, is_quoted, found["on"] is not None)


def _ends(text: str) -> Iterator[Example]:
    """Yield the calls with a stated exit code and an unspecified output."""
    for found in re.finditer(rf"(?P<call>{_QUOTED})\s+(?={_EXITS.pattern})", text, re.IGNORECASE):
        yield Example(_unquoted(found["call"])[0], None, exit_code_in(text[found.end() :]))


def _session(text: str) -> Iterator[Example]:
    """Yield the calls after a shell prompt, with the lines below as output."""
    call: str | None = None
    out: list[str] = []
    for line in [*text.splitlines(), "$ "]:
        found = _PROMPT.match(line)
        if (found or not line.strip() or line.strip().startswith("```") or line == "$ ") and call is not None:
            if out:
                yield Example(call, "\n".join(out))
            call, out = None, []
        elif call is not None:
            out.append(line.strip())
        if found:
            call, out = found["call"].strip(), []


def _unquoted(text: str) -> tuple[str, bool]:
    """Return the text without quotes, and whether it was quoted."""
    text = text.strip()
    if len(text) > 1 and text[0] in '`"“':
        return text[1:-1], True
    return _LEADING.sub("", text), False
