"""Cost of a session's narrator prompts, and what they remember: `make bench-narrator-prompt`.

Thirty-two turns of each reference scenario are narrated by a script in long answers. Prompts are sent with
the cache markers that the gateway plans, half a minute apart. The figures are those of the scripted LLM,
which counts, caches and bills like Anthropic. They are exact; no time is measured. The small room, of a
model with a window of 4,096 tokens, is the comparison: it has a summary in place of a history.

Recall is the check of meaning: a question in a later turn is about a detail that the player mentions in turn
2, and a narrator answers from its prompt alone.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bench.reference import SPECS
from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.models.call_cost import cost_of
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.prompt_cache.planner import PromptCache
from peripety.gateway.providers.provider import AnswerFinished, ProviderCall
from peripety.gateway.types.message import Text
from peripety.gateway.types.response import StopReason
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.session.narration.prompt_room import PromptRoom
from support.gateway.cache_oracle import CacheTruth, TrueTokens, read_as_sent, usage_of
from support.session.recall import RECALLED_TURNS, recall_rate
from support.session.sessions import FULL_ROOM, endless, prompts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import Usage

MODELS = {"average": ("openai", "gpt-5-mini"), "strong": ("anthropic", "claude-sonnet-5")}
ROOMS = {"small": PromptRoom.for_window(4_096), "full": FULL_ROOM}
DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "numbers": SPECS["numeric"],
    "mixed": SPECS["mixed"],
    "random": lambda: generate_spec(1, 1),
}
FIRST_TURN, LAST_TURN = 3, 32
SECONDS_BETWEEN_TURNS = 30
ANSWER_TOKENS = 200
DAY = datetime(2026, 11, 22, tzinfo=UTC)
PICO_DOLLARS = 10**12


@dataclass(frozen=True)
class Bill:
    """Mean figures of a session's turns.

    Attributes:
        tokens: tokens of a prompt.
        cached: the share of them that was read from the cache.
        dollars: cost of a prompt and its answer, without thoughts.
    """

    tokens: float
    cached: float
    dollars: float


async def bill(provider: str, model: str, room: PromptRoom) -> Bill:
    """Return the mean bill of the turns, over all scenarios."""
    data = ModelCatalog.load().find(provider, model)
    used: list[Usage] = []
    for document in DOCUMENTS.values():
        used += [
            usage async for usage in _usage_of_turns(data, prompts(endless(document()), LAST_TURN, room=room))
        ]
    costs = [cost_of(usage, data, DAY) for usage in used]
    tokens = sum(usage.input_tokens for usage in used)
    return Bill(
        tokens / len(used),
        sum(usage.cache_read_tokens for usage in used) / tokens,
        sum(cost.total for cost in costs if cost is not None) / len(used) / PICO_DOLLARS,
    )


async def _usage_of_turns(data: ModelData, requests: AsyncIterator[GenerateRequest]) -> AsyncIterator[Usage]:
    now, turn = 0.0, 0
    cache, truth = PromptCache(lambda: now, lambda: DAY, TrueTokens()), CacheTruth()
    async for request in requests:
        turn += 1
        sent = replace(request, messages=normalize_messages(request.messages))
        visit = cache.plan_call(data.provider, "one", ProviderCall(sent, data.name, data))
        found = truth.look(read_as_sent(visit.call), now)
        found.on_accepted()
        found.on_finished(now)
        found.on_started()
        usage = replace(usage_of(found), output_tokens=ANSWER_TOKENS)
        visit.on_finished(AnswerFinished((Text("a"),), StopReason.END, usage, data.name))
        now += SECONDS_BETWEEN_TURNS
        if turn >= FIRST_TURN:
            yield usage


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    row = "{:9} {:22} {:6} {:>7} {:>7} {:>11}".format
    yield row("model", "", "room", "tokens", "cached", "a turn")
    for kind, (provider, model) in MODELS.items():
        for name, room in ROOMS.items():
            told = asyncio.run(bill(provider, model, room))
            yield row(kind, model, name, f"{told.tokens:,.0f}", f"{told.cached:.1%}", f"{told.dollars:.5f} $")
    for name, room in ROOMS.items():
        rates = [f"turn {turn}: {asyncio.run(recall_rate(turn, room)):.0%}" for turn in RECALLED_TURNS]
        yield f"recall of a detail of turn 2, {name} room: {', '.join(rates)}"


if __name__ == "__main__":
    for line in lines():
        sys.stdout.write(f"{line}\n")
