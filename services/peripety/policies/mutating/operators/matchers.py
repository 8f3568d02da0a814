"""Mutation operators of matchers: widen, narrow, or change the kind or quantifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE, Change
from peripety.mutations.steps import some
from peripety.policies.entries import below_path, parent_path, pattern_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["OPERATORS"]

_QUANTIFIERS = ("all", "any", "none", "not_all")
_INNER = "inner"


def _change_quantifier(rule: Mapping[str, Any]) -> Iterator[Change]:
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        written = matcher.get("quantifier")
        for quantifier in _QUANTIFIERS:
            if quantifier != (written or "all"):
                before = GONE if written is None else written
                yield Change(("when", "arguments", number, "quantifier"), before, quantifier)


def _read_as_identifier(rule: Mapping[str, Any]) -> Iterator[Change]:
    """Compare values as plain text; matchers with a named list are not changed."""
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        if matcher["kind"] != "identifier" and not any(entry.startswith("@") for entry in matcher["among"]):
            yield Change(("when", "arguments", number, "kind"), matcher["kind"], "identifier")


def _drop_entry(rule: Mapping[str, Any]) -> Iterator[Change]:
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        if len(matcher["among"]) > 1:
            for index, entry in some(matcher["among"]):
                yield Change(("when", "arguments", number, "among", index), entry, GONE)


def _replace_entry(
    kinds: frozenset[str], replaced: Callable[[str, str], str | None]
) -> Callable[[Mapping[str, Any]], Iterator[Change]]:
    """Return an operator that replaces an entry.

    Args:
        kinds: the kinds of matchers that it applies to.
        replaced: returns the new entry for a kind and an entry; None for no replacement.
    """

    def operator(rule: Mapping[str, Any]) -> Iterator[Change]:
        for number, matcher in enumerate(rule["when"].get("arguments", ())):
            kind = matcher["kind"]
            for index, entry in some(matcher["among"]) if kind in kinds else ():
                after = None if entry.startswith("@") else replaced(kind, entry)
                if after is not None:
                    yield Change(("when", "arguments", number, "among", index), entry, after)

    return operator


def _wider(kind: str, entry: str) -> str | None:
    """Return the next wider pattern: all hosts below, all hosts, or all addresses of a host."""
    local, below, host = pattern_of(kind, entry)
    if host == "*" or host.startswith("["):
        return None
    if local not in {"", "*"}:
        return f"*@{host}"
    at = "*@" if local else ""
    return f"{at}*" if below else f"{at}*.{host}"


def _narrower(kind: str, entry: str) -> str | None:
    """Return the host alone for a pattern of all hosts below it."""
    local, below, host = pattern_of(kind, entry)
    return (f"{local}@{host}" if local else host) if below else None


_HOSTS = frozenset({"domain", "email"})
_PATHS = frozenset({"path"})

OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Change]]] = {
    "change_quantifier": _change_quantifier,
    "read_as_identifier": _read_as_identifier,
    "drop_entry": _drop_entry,
    "widen_path": _replace_entry(_PATHS, lambda _kind, entry: parent_path(entry)),
    "narrow_path": _replace_entry(_PATHS, lambda _kind, entry: below_path(entry, _INNER)),
    "widen_host": _replace_entry(_HOSTS, _wider),
    "narrow_host": _replace_entry(_HOSTS, _narrower),
}
"""The operators by name."""
