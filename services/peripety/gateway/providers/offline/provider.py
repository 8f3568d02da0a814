"""The provider without a model: it authors scenarios and narrates turns, and says so of itself."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError
from peripety.gateway.model import ChatRole, StopReason, TextDelta, Usage
from peripety.gateway.providers.base import Finished, ProviderEvent
from peripety.gateway.providers.offline.author import author
from peripety.gateway.providers.offline.languages import MARK
from peripety.gateway.providers.offline.narrate import narrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.gateway.model import GenerateRequest, ResponseSchema

__all__ = ["OfflineProvider"]

_PIECE = re.compile(r"\S{1,24}\s*|\s+")
_HOW_TO_GET_A_MODEL = (
    "set MODEL_PROVIDER to openai or generic, OPENAI_API_BASE to the address of an OpenAI-compatible server, "
    "OPENAI_API_KEY to its key and MODEL_NAME to the model, and start again."
)
_NO_MODEL = (
    "There is no language model here. The offline provider writes scenarios from your own words and narrates "
    f"turns from their facts; it cannot converse. To talk to a model, {_HOW_TO_GET_A_MODEL} {MARK}"
)


class OfflineProvider:
    """Answers without a model, a key or a network; the same request gets the same answer.

    An answer is never cut short, whatever `max_output_tokens` says. Usage is reported as zero, because no
    model read or wrote a token.
    """

    name = "offline"

    async def stream(self, request: GenerateRequest) -> AsyncIterator[ProviderEvent]:
        """Answer word by word.

        Raises:
            FailedPreconditionError: the answer has to match a schema that takes a model to fill.
        """
        for piece in _PIECE.findall(_answer(request)):
            yield TextDelta(piece)
            await asyncio.sleep(0)
        yield Finished(StopReason.END, Usage(), self.name)

    async def aclose(self) -> None:
        """Nothing is held open."""


def _answer(request: GenerateRequest) -> str:
    if request.schema is None:
        return _NO_MODEL
    said = [message.content for message in request.messages if message.role is ChatRole.USER]
    return json.dumps(_structured(request.schema, said, request.seed), ensure_ascii=False)


def _structured(schema: ResponseSchema, said: Sequence[str], seed: int | None) -> dict[str, Any]:
    if schema.name == "scenario_spec":
        return _authored(said, seed)
    if schema.name == "outcome":
        asked, _ = _last_with("facts", said)
        return dict(narrate(asked.get("facts") or {}, asked.get("history") or ()))
    raise FailedPreconditionError(
        f"the offline provider cannot fill the schema '{schema.name}'; to use a model, {_HOW_TO_GET_A_MODEL}",
        code="MODEL_REQUIRED",
    )


def _authored(said: Sequence[str], seed: int | None) -> dict[str, Any]:
    """A scenario for the last description; what was said after it asks for another try."""
    asked, position = _last_with("description", said)
    if not asked:
        asked = {"description": said[0] if said else ""}
        position = 0
    wanted = asked.get("seed", seed)
    return author(
        str(asked["description"]),
        wanted if isinstance(wanted, int) else None,
        variation=max(len(said) - 1 - position, 0),
    )


def _last_with(key: str, said: Sequence[str]) -> tuple[dict[str, Any], int]:
    """The last message that is a JSON object with this key, and its position; an empty object without one."""
    for position in range(len(said) - 1, -1, -1):
        try:
            value = json.loads(said[position])
        except ValueError:
            continue
        if isinstance(value, dict) and key in value:
            return value, position
    return {}, -1
