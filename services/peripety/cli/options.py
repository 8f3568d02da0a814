"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["About", "Seed", "Server"]

_MAX_SEED = 2**53 - 1

About = Annotated[
    str | None,
    typer.Option("--about", metavar="TEXT", help="What the scenario is about, in any language; - reads it."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=_MAX_SEED, help="Makes chance repeatable. [default: the scenario's]"),
]
Server = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Ask this server. [default: run everything in this process]"),
]
