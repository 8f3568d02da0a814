"""Parts and neighbours of matcher entries: parent paths, sub-paths and host patterns."""

from __future__ import annotations

__all__ = ["below_path", "parent_path", "pattern_of"]


def parent_path(entry: str) -> str | None:
    """Return the parent of a path; None for the root."""
    kept: list[str] = []
    for segment in entry.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return f"/{'/'.join(kept[:-1])}" if kept else None


def below_path(entry: str, name: str) -> str:
    """Return a path below another."""
    return f"{entry.rstrip('/')}/{name}"


def pattern_of(kind: str, entry: str) -> tuple[str, str, str]:
    """Split a domain or address pattern into the local part, `*.` or an empty text, and the host."""
    local, _, host = entry.rpartition("@") if kind == "email" else ("", "", entry)
    below = "*." if host.startswith("*.") else ""
    return local, below, host.removeprefix(below)
