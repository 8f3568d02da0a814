"""Bodies and headers of requests, as the routes validate them and OpenAPI describes them."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.json_schema import SkipJsonSchema


def _to_whole_number(value: object) -> object:
    """Return a JSON number that is whole as an integer; any other value, except None, is an error."""
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not value.is_integer()):
        raise ValueError("must be a whole number")
    return value


IdempotencyKey = Annotated[uuid.UUID | SkipJsonSchema[None], Header()]
"""Header with the UUID of a request that may be repeated; None without one."""

_Seed = Annotated[int, Field(ge=0, lt=2**53), BeforeValidator(_to_whole_number)]
_TurnNumber = Annotated[int, Field(ge=1, lt=2**53), BeforeValidator(_to_whole_number)]


class GenerateBody(BaseModel):
    """Body of `POST /scenarios/generate`."""

    model_config = ConfigDict(extra="forbid")

    description: str = Field(max_length=102_400, description="The scenario in any language; may be empty.")
    seed: _Seed | None = Field(
        None, description="Seed of the scenario; by default derived from the description."
    )
    language: str = Field(
        "",
        max_length=35,
        pattern="^([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*)?$",
        description="Language of names and texts as a BCP 47 tag; by default that of the description.",
    )
    level: str | None = Field(
        None,
        pattern="^(schema|static|dry_run|certificate)$",
        description="Checks that the result has to pass; `certificate` by default.",
    )


class SessionBody(BaseModel):
    """Body of `POST /sessions`."""

    model_config = ConfigDict(extra="forbid")

    scenario_id: str = Field(min_length=1, description="The scenario to play.")
    seed: _Seed | None = Field(None, description="Seed of the run; by default that of the specification.")
    pov: str = Field("", description="Entity whose point of view is returned; empty for the public part.")
    seats: dict[str, JsonValue] | None = Field(None, description="Seats, as `SeatConfig`.")
    narrator: dict[str, JsonValue] | None = Field(None, description="Options, as `NarratorOptions`.")


class ActionBody(BaseModel):
    """One action of a turn."""

    model_config = ConfigDict(extra="forbid")

    action_id: str = Field(description="Id of the action.")
    params: dict[str, JsonValue] = Field(
        default_factory=dict, description="A value for each parameter: number, string or boolean."
    )


class TurnBody(BaseModel):
    """Body of `POST /sessions/{id}/turns`."""

    model_config = ConfigDict(extra="forbid")

    input: str = Field("", description="Free text of the player.")
    actions: list[ActionBody] = Field(default_factory=list, max_length=16, description="Actions in order.")
    pov: str = Field("", description="Entity whose point of view is streamed; empty for the public part.")
    request_id: uuid.UUID | None = Field(None, description="UUID of this turn; repeat it to resume.")
    expected_turn: _TurnNumber | None = Field(
        None, description="Number of this turn; by default the next one."
    )
    seat_id: str = Field("", description="Seat that acts; empty for a single player.")


class LinkBody(BaseModel):
    """Body of `POST /sessions/{id}/links`."""

    model_config = ConfigDict(extra="forbid")

    pov: str = Field("", description="Entity whose point of view is opened; empty for the public part.")
    seat_id: str = Field("", description="Seat that the link plays; empty for a spectator.")
