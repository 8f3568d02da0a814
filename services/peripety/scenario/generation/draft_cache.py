"""Cache of generated specifications, by a digest of the order.

A row contains a specification and the record of its generation. Of the order it contains only a digest, and
of the description only the excerpt that a warning quotes.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from functools import cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from sqlalchemy import Column, Float, Integer, LargeBinary, String, Table, Text, delete, insert, select

from peripety.certification.types import ENGINE_VERSION, decode, encode
from peripety.core.concurrency import closing
from peripety.core.config import ProviderName
from peripety.core.storage.database import METADATA
from peripety.core.text_files import read_prompt, read_prompts
from peripety.gateway.codec import decode_findings, encode_findings, to_json_text
from peripety.gateway.types.response import UsageTotal
from peripety.scenario.generation.merge import answer_schema
from peripety.scenario.types import SpecGenerated
from peripety.scenario.validation import validate_order
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.scenario.types import GenerationEvent, GenerationOrder


load_prompt = partial(read_prompt, "peripety.scenario")
load_prompts = partial(read_prompts, "peripety.scenario")


_CAPACITY = 1_000

_drafts_table = Table(
    "scenario_drafts",
    METADATA,
    Column("key", String(64), primary_key=True),
    Column("document", LargeBinary, nullable=False),
    Column("findings", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("model", Text, nullable=False),
    Column("certificate", LargeBinary),
    Column("create_time", Float, nullable=False, index=True),
)
_columns = _drafts_table.c


class SpecGenerator(Protocol):
    """Generator of specifications, with or without a cache."""

    def generate(self, order: GenerationOrder) -> AsyncIterator[GenerationEvent]:
        """Write a specification; `Completed` or `SpecGenerationFailed` is the last event."""
        ...


class DraftCache:
    """Caching generator: a result of a model is stored and returned again for the same order.

    Results of rules or a script are not stored. They are cheap, a model may be available next time, and a
    script may change. Concurrent equal orders in one process are serialized, so that later ones find the
    result of the first (single-flight). The newest 1,000 results are stored.

    Args:
        generator: the wrapped generator.
        database: stores the results, for all processes that share it.
        configured: fingerprint of the default provider configuration.
        now: returns the time in seconds since 1970.
    """

    def __init__(
        self,
        generator: SpecGenerator,
        database: Database,
        configured: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._generator = generator
        self._database = database
        self._configured = configured
        self._now = now
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def generate(self, order: GenerationOrder) -> AsyncIterator[GenerationEvent]:
        """Return the cached specification of an order, or write one.

        Yields:
            The events of the generator; for a cached specification `Completed` alone.

        Raises:
            PeripetyError: from the generator.
        """
        validate_order(order)
        key = self._key(order)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            kept = None if order.refresh else await self._get(key)
            if kept is not None:
                yield kept
                return
            async with closing(self._generator.generate(order)) as events:
                async for event in events:
                    if isinstance(event, SpecGenerated) and _is_model_result(event):
                        await self._put(key, event)
                    yield event

    def _key(self, order: GenerationOrder) -> str:
        """Return a digest of everything that determines a result, including the limits."""
        asked = [
            _fingerprint(),
            order.description,
            order.seed,
            order.level.name,
            order.model or "",
            "" if order.model else self._configured,
            asdict(order.limits),
            *((order.language,) if order.language else ()),  # without one, the keys of earlier versions
        ]
        return sha256(json.dumps(asked).encode()).hexdigest()

    async def _get(self, key: str) -> SpecGenerated | None:
        async with self._database.read() as connection:
            row = (await connection.execute(select(_drafts_table).where(_columns.key == key))).one_or_none()
        return None if row is None else _row_to_event(row)

    async def _put(self, key: str, event: SpecGenerated) -> None:
        certificate = event.certificate and encode(event.certificate)
        async with self._database.write("drafts") as connection:
            await connection.execute(delete(_drafts_table).where(_columns.key == key))
            await connection.execute(
                insert(_drafts_table).values(
                    key=key,
                    document=event.document,
                    findings=to_json_text(encode_findings(event.findings)),
                    attempts=event.attempts,
                    model=event.model,
                    certificate=certificate,
                    create_time=self._now(),
                ),
            )
            await _delete_oldest(connection)


def _is_model_result(event: SpecGenerated) -> bool:
    provider = event.model.partition("/")[0]
    return not event.without_model and provider != ProviderName.SCRIPTED.value


@cache
def _fingerprint() -> str:
    """Return the common inputs of all results: the program, the engine, the prompts and the schema."""
    told = [__version__, ENGINE_VERSION, load_prompts(), answer_schema()]
    return sha256(json.dumps(told).encode()).hexdigest()


def _row_to_event(row: Row[tuple[object, ...]]) -> SpecGenerated:
    return SpecGenerated(
        row.document,
        decode_findings(json.loads(row.findings)),
        row.attempts,
        UsageTotal(),
        row.model,
        without_model=False,
        certificate=row.certificate and decode(row.certificate),
        from_cache=True,
    )


async def _delete_oldest(connection: AsyncConnection) -> None:
    times = select(_columns.create_time).order_by(_columns.create_time.desc())
    first_too_many = times.offset(_CAPACITY).limit(1).scalar_subquery()
    await connection.execute(delete(_drafts_table).where(_columns.create_time <= first_too_many))
