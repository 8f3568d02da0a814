"""What to do about findings, kind by kind: one catalogue for the command line, for clients and for models."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["Kind", "catalogue", "remedy_of"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of finding.

    Attributes:
        means: what is wrong, in general.
        fix: what to do about it.
    """

    means: str
    fix: str


@cache
def catalogue() -> dict[str, dict[str, Kind]]:
    """Every kind of finding by its code, grouped by how it is found."""
    text = files("peripety").joinpath("remedies.toml").read_text(encoding="utf-8")
    return {
        group: {code: Kind(**kind) for code, kind in kinds.items()}
        for group, kinds in tomllib.loads(text).items()
    }


def remedy_of(code: str) -> str:
    """What to do about findings of a code; empty for a code that this version does not know."""
    kind = _kinds().get(code)
    return kind.fix if kind else ""


@cache
def _kinds() -> dict[str, Kind]:
    return {code: kind for kinds in catalogue().values() for code, kind in kinds.items()}
