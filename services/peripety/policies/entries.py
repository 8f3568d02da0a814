"""What stands next to the entries of a condition."""

from __future__ import annotations

__all__ = ["below_path", "parent_path", "pattern_of"]


def parent_path(entry: str) -> str | None:
    """The path that a path stands in; None for the root."""
    kept: list[str] = []
    for segment in entry.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return f"/{'/'.join(kept[:-1])}" if kept else None


def below_path(entry: str, name: str) -> str:
    """A path below another."""
    return f"{entry.rstrip('/')}/{name}"


def pattern_of(kind: str, entry: str) -> tuple[str, str, str]:
    """A domain or an address in parts: what is before the `@`, if there is one; `*.` or nothing; the host."""
    local, _, host = entry.rpartition("@") if kind == "email" else ("", "", entry)
    below = "*." if host.startswith("*.") else ""
    return local, below, host.removeprefix(below)
