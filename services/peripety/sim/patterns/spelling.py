"""Conversion of a pattern tree to a regular expression that is independent of flags and Unicode tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.sim.patterns.syntax import Assertion, Characters, Choice, Repeat, Sequence

if TYPE_CHECKING:
    from peripety.sim.patterns.syntax import Node

__all__ = ["spelled"]

_ASSERTIONS = {
    Assertion.START: r"\A",
    Assertion.END: r"\z",
    Assertion.BOUNDARY: r"(?-u:\b)",
    Assertion.NO_BOUNDARY: r"(?-u:\B)",
}
_NO_CHARACTER = r"[^\x{0}-\x{10FFFF}]"


def spelled(tree: Node) -> str:
    """Return the tree in the syntax of Rust's crate `regex`."""
    match tree:
        case Characters(ranges):
            members = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in ranges)
            return f"[{members}]" if members else _NO_CHARACTER
        case Assertion():
            return _ASSERTIONS[tree]
        case Sequence(parts):
            return f"(?:{''.join(map(spelled, parts))})"
        case Choice(options):
            return f"(?:{'|'.join(map(spelled, options))})"
        case Repeat(node, least, most):
            return f"(?:{spelled(node)}){{{least},{'' if most is None else most}}}"
