"""`peripety sessions odds` and `watch`: outcome forecasts and live events of a session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2 as pb
from peripety.cli.bundling import sessions_at
from peripety.cli.jsonify import enum_word, jsonify
from peripety.cli.output import progress, results, write_json
from peripety.cli.story import Story
from peripety.cli.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.api.common.v1 import common_pb2

__all__ = ["followed", "futures", "odds", "watch"]

_KIND = pb.OutcomeProbability.DESCRIPTOR.fields_by_name["kind"]


def futures(session_id: str, persona: str, runs: int, horizon: int) -> pb.ForecastOutcomesRequest:
    """Return the request for the odds."""
    number = engine_pb2.Persona.Value(f"PERSONA_{persona.upper()}")
    return pb.ForecastOutcomesRequest(session_id=session_id, persona=number, runs=runs, horizon=horizon)


def followed(session_id: str, pov: str, after: int, delay: int) -> pb.WatchSessionRequest:
    """Return the request to watch a session."""
    return pb.WatchSessionRequest(
        session_id=session_id, pov_entity_id=pov, after_sequence=after, delay_turns=delay
    )


def odds(
    request: pb.ForecastOutcomesRequest, actions: Sequence[str], server: str | None, *, as_json: bool
) -> None:
    """Simulate futures of a session, and print the probability of each outcome.

    Args:
        request: the futures.
        actions: first actions of each future, by the names of actions without parameters.
        server: `host:port` of a server; None runs them in this process.
        as_json: True to print the response as JSON.
    """
    request.actions.extend(engine_pb2.ActionCall(action_id=action) for action in actions)
    told = asyncio.run(_odds(request, server))
    if as_json:
        write_json(jsonify(told))
        return
    results().print(f"{told.runs:,} futures from turn {told.turn}:")
    for end in told.outcomes:
        results().print(f"  {enum_word(_KIND, end.kind)} {printable(end.condition)}: {_rate(end.rate)}")
    results().print(f"  survived: {_rate(told.survived)}")


def watch(request: pb.WatchSessionRequest, server: str | None, *, as_json: bool) -> None:
    """Print the recorded events of a session, then new events until it ends."""
    asyncio.run(_watch(request, server, as_json=as_json))


async def _odds(request: pb.ForecastOutcomesRequest, server: str | None) -> pb.ForecastOutcomesResponse:
    told = pb.ForecastOutcomesResponse()
    async with sessions_at(server) as stub:
        with progress("simulating futures", request.runs or None) as advance:
            async for response in stub.ForecastOutcomes(request):
                advance(response.runs - told.runs)
                told = response
    return told


async def _watch(request: pb.WatchSessionRequest, server: str | None, *, as_json: bool) -> None:
    story = Story(results())
    async with sessions_at(server) as stub:
        async for response in stub.WatchSession(request):
            kind = response.WhichOneof("event")
            if as_json:
                write_json(jsonify(response))
            elif kind == "turn_event":
                story.turn(response.turn_event)
            elif kind == "seat_acted":
                results().print(_acted(response.seat_acted))
            elif kind == "rewound":
                results().print(f"\nRewound to turn {response.rewound.turn}")
            elif kind == "closed":
                results().print(f"  {response.closed.reason}")


def _acted(acted: pb.WatchSessionResponse.SeatActed) -> str:
    waiting = ", ".join(map(printable, acted.waiting_seat_ids)) or "nobody"
    return f"  {printable(acted.seat_id)} has acted; waiting for {waiting}"


def _rate(rate: common_pb2.Rate) -> str:
    return f"{rate.value:.1%} (95 % interval {rate.low:.1%} to {rate.high:.1%})"
