"""A provider that answers, fails or hangs as the test says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from peripety.errors import PeripetyError
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import Text
from peripety.gateway.types.response import StopReason, TextDelta, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.providers.provider import ProviderCall, ProviderEvent


WORDS = (TextDelta("a"), TextDelta("b"))
SAID = (Text("ab"),)
END = AnswerFinished(SAID, StopReason.END, Usage(5, 2), "m-1")

Part: TypeAlias = TextDelta | AnswerFinished | PeripetyError | float
ANSWER: tuple[Part, ...] = (*WORDS, END)


def used(input_tokens: int, output_tokens: int) -> tuple[Part, ...]:
    """The same answer, for which the provider reports these tokens."""
    return (*WORDS, AnswerFinished(SAID, StopReason.END, Usage(input_tokens, output_tokens), "m-1"))


class Scripted:
    """Plays one script after the other, the last one again and again; a number is a pause.

    Attributes:
        calls: those that were made.
    """

    model = "m"
    account = ""

    def __init__(self, *scripts: tuple[Part, ...], name: str = "generic") -> None:
        self.name = name
        self.scripts = list(scripts)
        self.calls: list[ProviderCall] = []

    @property
    def requests(self) -> int:
        return len(self.calls)

    async def stream(self, call: ProviderCall) -> AsyncIterator[ProviderEvent]:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        self.calls.append(call)
        for part in script:
            if isinstance(part, PeripetyError):
                raise part
            if isinstance(part, float):
                await asyncio.sleep(part)
            else:
                yield part

    async def count_tokens(self, _call: ProviderCall) -> int | None:
        return None

    async def aclose(self) -> None:
        pass
