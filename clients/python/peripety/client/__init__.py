"""Client of Peripety: connect, play turns as streams that survive lost connections, and verify transcripts.

    async with AsyncClient("127.0.0.1:50051") as client:
        async for event in client.play(session, "wait"):
            print(event.WhichOneof("event"))

`Client` is the same without asyncio. Messages and stubs are in `peripety.api`.
"""

from peripety.client.client import AsyncClient, Client
from peripety.client.errors import CallError
from peripety.client.streams import action
from peripety.client.transcript import Transcript, TranscriptError, verify_transcript

__all__ = [
    "AsyncClient",
    "CallError",
    "Client",
    "Transcript",
    "TranscriptError",
    "action",
    "verify_transcript",
]
