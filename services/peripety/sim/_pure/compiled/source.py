"""Layout of generated statements."""

from __future__ import annotations

__all__ = ["dispatch", "indented"]

# Alternatives that are tested one after the other; more are bisected first.
_MOST_IN_A_ROW = 3


def indented(lines: list[str]) -> list[str]:
    """Indent lines as the body of a statement."""
    return [f"    {line}" for line in lines or ["pass"]]


def dispatch(variable: str, bodies: list[list[str]], first: int = 0) -> list[str]:
    """Return statements that execute the body whose number, counted from `first`, is in a variable."""
    if len(bodies) > _MOST_IN_A_ROW:
        half = len(bodies) // 2
        return [
            f"if {variable} < {first + half}:",
            *indented(dispatch(variable, bodies[:half], first)),
            "else:",
            *indented(dispatch(variable, bodies[half:], first + half)),
        ]
    lines: list[str] = []
    for number, body in enumerate(bodies, first):
        last = number == first + len(bodies) - 1
        test = f"{'el' if lines else ''}if {variable} == {number}:"
        lines += body or ["pass"] if last and not lines else ["else:" if last else test, *indented(body)]
    return lines
