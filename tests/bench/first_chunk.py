"""Latency of a token from the provider's socket to a gRPC client.

`PYTHONPATH=tests python -m bench.first_chunk`: a real HTTP server emits a token every 100 ms and records the
time; a client records when each one arrives. Two paths are measured: through the gateway service, and as the
narrator of a turn.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from dataclasses import dataclass, field

from bench.serving import serving
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.rpc.channel import open_channel
from support.engine.specs import playable
from support.gateway.fake_server import DONE, Reply, Request, delta, finish
from support.servers.apps import Api, new_id, turn_request

PAUSE_SECONDS = 0.1


@dataclass
class Metronome:
    """A provider that emits a token at a time."""

    tokens: int
    opening: str = ""
    closing: str = ""
    sent: list[float] = field(default_factory=list)

    async def answer(self, _request: Request, reply: Reply) -> None:
        await reply.start()
        await reply.send(delta(self.opening))
        for number in range(self.tokens):
            await asyncio.sleep(PAUSE_SECONDS)
            self.sent.append(time.perf_counter())
            await reply.send(delta(f"word{number} "))
        await reply.send(delta(self.closing) + finish() + DONE)
        await reply.end()

    def gaps(self, arrived: list[float]) -> list[float]:
        """Milliseconds from the emission of each token to its arrival."""
        return [(end - start) * 1000 for start, end in zip(self.sent, arrived, strict=False)]


async def through_the_gateway(tokens: int) -> list[float]:
    """The gaps of an answer of the gateway service."""
    metronome = Metronome(tokens)
    message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text="go")])
    question = pb.GenerateRequest(request_id=new_id(), prompt=pb.Prompt(messages=[message]))
    async with serving(metronome.answer) as address, open_channel(address) as channel:
        responses = GatewayServiceStub(channel).Generate(question)
        arrived = [time.perf_counter() async for response in responses if response.text_delta]
    return metronome.gaps(arrived)


async def through_a_turn(tokens: int) -> list[float]:
    """The gaps of the narration of a turn."""
    narrative = json.dumps({"narrative": "|"})
    opening, closing = narrative.split("|")
    metronome = Metronome(tokens, opening, closing)
    async with serving(metronome.answer) as address, Api.connected(address) as api:
        events = api.turn(turn_request(await api.session_of(playable())))
        arrived = [time.perf_counter() async for event in events if event.HasField("narrative_chunk")]
    return metronome.gaps(arrived)


def report(name: str, gaps: list[float]) -> str:
    """One line of figures."""
    return (
        f"{name:<30} first {gaps[0]:6.2f} ms   median {statistics.median(gaps):6.2f} ms"
        f"   worst of {len(gaps)} {max(gaps):6.2f} ms\n"
    )


def main(tokens: int = 30) -> None:
    """Measure both ways and print the figures."""
    sys.stdout.write("\nprovider's token to client's chunk\n")
    sys.stdout.write(report("gateway, Generate", asyncio.run(through_the_gateway(tokens))))
    sys.stdout.write(report("session, TakeTurn", asyncio.run(through_a_turn(tokens))))


if __name__ == "__main__":
    main()
