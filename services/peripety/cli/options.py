"""Options that several commands have."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from peripety.cli.caps import MAX_DOLLARS, MAX_SECONDS, MAX_TOKENS

__all__ = [
    "MAX_SEED",
    "About",
    "Attempts",
    "MaxCost",
    "MaxTime",
    "MaxTokens",
    "Model",
    "NewSeed",
    "Persona",
    "Seed",
    "Server",
]

MAX_SEED = 2**53 - 1
"""The largest seed that there is."""
# As much as a service lets one order have.
_MAX_ATTEMPTS = 100


class Persona(Enum):
    """Who plays where nobody does."""

    IDLE = "idle"
    RANDOM = "random"
    GREEDY = "greedy"
    CAUTIOUS = "cautious"
    PLANNER = "planner"
    SABOTEUR = "saboteur"


About = Annotated[
    str | None,
    typer.Option("--about", metavar="TEXT", help="What the scenario is about, in any language; - reads it."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=MAX_SEED, help="Makes chance repeatable. [default: the scenario's]"),
]
NewSeed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        max=MAX_SEED,
        help="The scenario's own. [default: follows from the text; 0 at random]",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Ask this server. [default: run everything in this process]"),
]
Model = Annotated[
    str,
    typer.Option("--model", metavar="NAME", help="Who writes: provider/model. [default: the configured one]"),
]
Attempts = Annotated[
    int, typer.Option("--attempts", min=1, max=_MAX_ATTEMPTS, help="Most answers of the model.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, max=MAX_TOKENS, help="Most tokens, in and out. [default: no cap]"),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost", min=1e-6, max=MAX_DOLLARS, metavar="DOLLARS", help="Most money. [default: no cap]"
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time", min=1e-3, max=MAX_SECONDS, metavar="SECONDS", help="Most time. [default: no cap]"
    ),
]
