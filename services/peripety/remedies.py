"""Catalogue of finding kinds and their fixes, shared by the command line, clients and prompts."""

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
        means: the problem in general.
        fix: the remedy.
    """

    means: str
    fix: str


@cache
def catalogue() -> dict[str, dict[str, Kind]]:
    """Return all kinds of findings by code, grouped by the check that reports them."""
    text = files("peripety").joinpath("remedies.toml").read_text(encoding="utf-8")
    return {
        group: {code: Kind(**kind) for code, kind in kinds.items()}
        for group, kinds in tomllib.loads(text).items()
    }


def remedy_of(code: str) -> str:
    """Return the fix for findings of a code; empty if this version does not know the code."""
    kind = _kinds().get(code)
    return kind.fix if kind else ""


@cache
def _kinds() -> dict[str, Kind]:
    return {code: kind for kinds in catalogue().values() for code, kind in kinds.items()}
