"""Tools that a task description prohibits."""

from __future__ import annotations

import re

__all__ = ["prohibited_in"]

# All repetitions are bounded or possessive, so the time is linear in the length of the description.
_WORD = r"[`'\"]?(?<!\w)[A-Za-z][\w.+-]{0,63}+[`'\"]?"
_LIST = rf"(?P<tools>{_WORD}(?:\s*,\s*(?:or\s+|and\s+)?{_WORD}|\s+(?:or|and|nor)\s+{_WORD}){{0,50}})"
_FORBIDS = r"(?:do|must|may|should|shall)\s+not|don't|cannot|never"
_USE = r"use|call|run|import|invoke|install"
_USING = r"using|calling|running|importing|invoking|installing"
_FORBIDDEN = r"not\s+allowed|forbidden|prohibited|banned|disallowed|off\s+limits"
_SENTENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{_FORBIDS})\s+(?:{_USE})\s+(?:the\s+|any\s+)?{_LIST}",
        rf"without\s+(?:{_USING})\s+(?:the\s+|any\s+)?{_LIST}",
        rf"{_LIST}\s+(?:is|are)\s+(?:{_FORBIDDEN})",
        rf"(?:{_FORBIDDEN})(?:\s+tools?)?\s*:\s*{_LIST}",
    )
)
_SEPARATOR = re.compile(r"\s*,\s*(?:or\s+|and\s+)?|\s+(?:or|and|nor)\s+", re.IGNORECASE)
_NO_TOOLS = frozenset(
    {
        *("a", "an", "any", "it", "its", "that", "the", "their", "them", "these", "this", "those", "to"),
        *("external", "internet", "libraries", "library", "module", "modules", "network", "other"),
        *("package", "packages", "third-party", "tool", "tools", "you", "your"),
    }
)


def prohibited_in(description: str) -> tuple[str, ...]:
    """Return the prohibited tools in order of appearance, each once."""
    found: dict[str, None] = {}
    for sentence in _SENTENCES:
        for match in sentence.finditer(description):
            for word in _SEPARATOR.split(match["tools"]):
                tool = word.strip("`'\".")
                if tool and tool.lower() not in _NO_TOOLS:
                    found.setdefault(tool)
    return tuple(sorted(found, key=description.find))
