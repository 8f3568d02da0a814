"""Gateway that stores the answers of a durable run with the run, and does not request them again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from peripety.core.concurrency import closing
from peripety.core.runs.answers import current_answers
from peripety.gateway.codec import decode_completion, encode_completion, to_json_text
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache.caching_gateway import cache_key
from peripety.gateway.types.response import Completed, collect_completion, replay_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.runs.answers import RunAnswers
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import Completion, GatewayEvent, ModelGateway


class JournaledGateway:
    """`ModelGateway` that replays the answers a run has received before its process ended.

    Outside a run, requests go to the wrapped gateway. A replayed answer has the usage of the time when it was
    paid, so the budget of an order holds for the whole run.

    Args:
        inner: the wrapped gateway.
    """

    def __init__(self, inner: ModelGateway) -> None:
        self._inner = inner

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream a stored or new answer; see `ModelGateway.stream`."""
        answers = current_answers.get()
        return self._inner.stream(request) if answers is None else self._stream_stored(answers, request)

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return a stored or new answer; see `ModelGateway.generate`."""
        return await collect_completion(self.stream(request))

    async def _stream_stored(
        self,
        answers: RunAnswers,
        request: GenerateRequest,
    ) -> AsyncIterator[GatewayEvent]:
        question = cache_key(request, AnswerSource("", request.model or "", ""))
        number = answers.ask(question)
        stored = await answers.find(question, number)
        if stored is not None:
            for event in replay_completion(decode_completion(json.loads(stored))):
                yield event
            return
        async with closing(self._inner.stream(request)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    # Before it is used: an answer that was paid is never lost.
                    body = to_json_text(encode_completion(event.completion))
                    await answers.add(question, number, body)
                yield event
