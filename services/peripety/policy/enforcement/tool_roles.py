"""Roles of arguments, guessed from the input schemas of a server's tools.

Rules read arguments by their roles. A guess is a proposal: each has a reason, and an argument without a clear
sign gets no role.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_WRITING = re.compile(
    r"(?:^|_)(?:write|create|delete|remove|move|rename|edit|save|append|update|put|upload|set|commit|add|reset"
    r"|checkout|switch|restore|merge|rebase|push|pull|apply|insert|replace|copy|make|mkdir|truncate)(?:_|$)"
)
_END = re.compile(r"(?:^|_)(?:source|src|from|destination|dest|target)(?:_|$)")
_ABOUT_FILES = re.compile(r"(?:^|_)(?:files?|folders?|director(?:y|ies)|paths?)(?:_|$)")
_TARGET = re.compile(r"(?:^|_)(?:destination|dest|target|to|output|out)(?:_|$)")
_SIGNS = (
    (
        "path",
        re.compile(r"(?:^|_)(?:paths?|files?|filename|filepath|folder|dir|directory|directories)(?:_|$)"),
    ),
    ("url", re.compile(r"(?:^|_)(?:urls?|uri|uris|href|link|endpoint)(?:_|$)")),
    ("host", re.compile(r"(?:^|_)(?:hosts?|hostname|domain|domains)(?:_|$)")),
    ("recipient", re.compile(r"(?:^|_)(?:to|cc|bcc|recipients?|emails?|e_mail|address|addresses)(?:_|$)")),
)
_FORMATS = {"uri": "url", "email": "recipient", "hostname": "host"}


@dataclass(frozen=True, slots=True)
class GuessedRole:
    """A role of an argument.

    Attributes:
        path: JSON Pointer of the argument.
        role: its role.
        reason: the sign in the schema, for a person.
    """

    path: str
    role: str
    reason: str


def guess_roles(tool_name: str, schema: Mapping[str, Any]) -> Iterator[GuessedRole]:
    """Yield the roles of the arguments of a tool.

    Args:
        tool_name: the name of the tool; it shows if a path is read or written.
        schema: the input schema.
    """
    for name, argument in (schema.get("properties") or {}).items():
        if not isinstance(argument, dict) or not _holds_text(argument):
            continue
        words = _to_words(name)
        form = argument.get("format") or _items(argument).get("format")
        if form in _FORMATS:
            role, reason = _FORMATS[form], f"format {form}"
        else:
            signs = (*_SIGNS, *([("path", _END)] if _ABOUT_FILES.search(_to_words(tool_name)) else []))
            found = next(((role, match) for role, sign in signs if (match := sign.search(words))), None)
            if found is None:
                continue
            role, reason = found[0], f"name contains {found[1].group().strip('_')}"
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        if role == "path":
            writes = bool(_WRITING.search(_to_words(tool_name)) or _TARGET.search(words))
            role = "write_path" if writes else "read_path"
            reason += f", and {tool_name} {'writes' if writes else 'reads'}"
        yield GuessedRole(pointer, role, reason)


def _holds_text(argument: Mapping[str, Any]) -> bool:
    kinds = argument.get("type", "string"), _items(argument).get("type", "string")
    return kinds[0] == "string" or "string" in kinds[0] or (kinds[0] == "array" and kinds[1] == "string")


def _items(argument: Mapping[str, Any]) -> Mapping[str, Any]:
    items = argument.get("items")
    return items if isinstance(items, dict) else {}


def _to_words(name: str) -> str:
    """Return a name in lower case with underscores between its words."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
