"""Options shared by several commands, and the limits of numeric options.

The limits are above any sensible run, and within the range of the request fields.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

MAX_CALLS = 10**6
MAX_COUNT = 10**9
MAX_TOKENS = 10**12
MAX_DOLLARS = 1e6
MAX_SECONDS = 1e6


MAX_SEED = 2**53 - 1
"""The largest valid seed."""
# The limit of the service for one request.
_MAX_ATTEMPTS = 100


class Persona(Enum):
    """Automatic players of simulated games."""

    IDLE = "idle"
    RANDOM = "random"
    GREEDY = "greedy"
    CAUTIOUS = "cautious"
    PLANNER = "planner"
    SABOTEUR = "saboteur"
    CURIOUS = "curious"
    PAR = "par"


Description = Annotated[
    str | None,
    typer.Option(
        "--description",
        metavar="TEXT",
        help="Description of the scenario, in any language; use - for standard input.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=MAX_SEED, help="Seed of the random numbers. [default: the seed of the scenario]"
    ),
]
NewSeed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        max=MAX_SEED,
        help="Seed of the scenario. [default: derived from the description; 0 with --random]",
    ),
]
Player = Annotated[Persona, typer.Option("--persona", help="Automatic player of the simulated games.")]
Players = Annotated[
    list[Persona] | None,
    typer.Option(
        "--persona",
        help="Automatic player to measure besides random; may be repeated. [default: all players]",
    ),
]
Horizon = Annotated[
    int | None,
    typer.Option(
        "--horizon",
        min=1,
        max=1_000,
        help="Maximum turns of a game. [default: the value of `horizon` in the specification]",
    ),
]
MaxRuns = Annotated[
    int | None,
    typer.Option(
        "--max-runs",
        min=64,
        max=100_000,
        help="Maximum games of an automatic player. [default: as many as the result needs]",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Use this server. [default: run everything in this process]"),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Model to use: provider/model. [default: the configured model]",
    ),
]
Attempts = Annotated[
    int,
    typer.Option("--attempts", min=1, max=_MAX_ATTEMPTS, help="Maximum number of model answers."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=1,
        max=MAX_TOKENS,
        help="Maximum tokens, input and output. [default: no limit]",
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        min=1e-6,
        max=MAX_DOLLARS,
        metavar="DOLLARS",
        help="Maximum cost in dollars. [default: no limit]",
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        min=1e-3,
        max=MAX_SECONDS,
        metavar="SECONDS",
        help="Maximum time in seconds. [default: no limit]",
    ),
]


SessionId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the session, its first characters, or latest; see `peripety sessions list`."
    ),
]


Pov = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="ENTITY",
        help="Entity whose point of view is used. [default: the public view]",
    ),
]


class Level(Enum):
    """Validation levels of a specification."""

    SCHEMA = "schema"
    STATIC = "static"
    DRY_RUN = "dry-run"
    CERTIFICATE = "certificate"
