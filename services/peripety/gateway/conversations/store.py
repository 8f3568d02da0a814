"""Tables of conversations and their turns.

A turn is one transaction: user message, valid answer and usage are written together or not at all. Of two
concurrent writers of the same turn, in any process, the database accepts one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    delete,
    insert,
    literal,
    select,
    tuple_,
    update,
)

from peripety.core.idempotency.store import IdempotencyStore, request_table
from peripety.core.storage.database import METADATA
from peripety.errors import ConflictError, NotFoundError, field_error
from peripety.gateway.conversations.conversation import (
    IdempotentResult,
    StoredConversation,
    StoredTurn,
    TurnSize,
    decode_config,
    decode_turn,
    decode_usage_total,
    encode_config,
    encode_turn,
    encode_usage_total,
    estimate_turn_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.idempotency.store import RequestKey
    from peripety.core.storage.database import Database
    from peripety.gateway.conversations.conversation import ConversationTurn
    from peripety.gateway.types.response import UsageTotal


_conversation_table = Table(
    "conversations",
    METADATA,
    Column("conversation_id", Text, primary_key=True),
    Column("charter", Text, nullable=False),
    Column("turn_count", BigInteger, nullable=False),
    Column("parent_id", Text),
    Column("parent_turn_count", BigInteger, nullable=False),
    Column("spent", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Index("conversations_newest_first", "created", "conversation_id"),
)

_turn_table = Table(
    "conversation_turns",
    METADATA,
    Column(
        "conversation_id",
        Text,
        ForeignKey(_conversation_table.c.conversation_id, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("number", BigInteger, primary_key=True),
    Column("turn", Text, nullable=False),
    Column("said_tokens", BigInteger, nullable=False),
    Column("answer_tokens", BigInteger, nullable=False),
    Column("may_be_first", Boolean, nullable=False),
    Column("committed", BigInteger, nullable=False),
)

_request_table = request_table(
    "conversation_requests",
    Column("conversation_id", Text, nullable=False),
    Column("turn", BigInteger, nullable=False),
)

_FIELDS = list(_conversation_table.c)


class ConversationStore:
    """Tables of conversations, their turns, and the requests that changed them.

    Completed requests are remembered for a day: a repeated request has no effect.

    Args:
        database: the database of the process.
        now: clock, in microseconds since 1970.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now
        self._requests = IdempotencyStore(database, _request_table, now)

    async def find_by_request(self, request: RequestKey) -> IdempotentResult | None:
        """Return the effect of an earlier request with the same id, if there is one.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await self._find_by_request(connection, request)

    async def create(self, conversation: StoredConversation, request: RequestKey) -> StoredConversation:
        """Store a new conversation; if the request already created one, return that."""
        async with self._database.write(f"request {request.request_id}") as connection:
            done = await self._find_by_request(connection, request)
            if done is not None:
                return await _load_conversation(connection, done.conversation_id)
            await connection.execute(insert(_conversation_table).values(_to_row(conversation)))
            await self._record_request(connection, request, conversation.conversation_id)
        return conversation

    async def get(self, conversation_id: str) -> StoredConversation:
        """Return a conversation.

        Raises:
            NotFoundError: it does not exist.
        """
        async with self._database.read() as connection:
            return await _load_conversation(connection, conversation_id)

    async def list_newest(self, before: tuple[Any, ...] | None, limit: int) -> list[StoredConversation]:
        """Return conversations, newest first.

        Args:
            before: creation time and id of the last conversation of the previous page.
            limit: the maximum number of conversations.
        """
        columns = (_conversation_table.c.created, _conversation_table.c.conversation_id)
        query = select(*_FIELDS).order_by(*(column.desc() for column in columns))
        if before is not None:
            query = query.where(tuple_(*columns) < before)
        async with self._database.read() as connection:
            return [_from_row(row) for row in await connection.execute(query.limit(limit))]

    async def turns(self, conversation_id: str, after: int = 0, limit: int | None = None) -> list[StoredTurn]:
        """Return the turns after a number, oldest first."""
        query = select(_turn_table).where(
            _turn_table.c.conversation_id == conversation_id,
            _turn_table.c.number > after,
        )
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(_turn_table.c.number).limit(limit))
            return [StoredTurn(row.number, decode_turn(row.turn), row.committed) for row in rows]

    async def turn_sizes(self, conversation_id: str) -> list[TurnSize]:
        """Return the estimated prompt size of each turn, oldest first."""
        query = select(_turn_table.c.said_tokens, _turn_table.c.answer_tokens, _turn_table.c.may_be_first)
        query = query.where(_turn_table.c.conversation_id == conversation_id).order_by(_turn_table.c.number)
        async with self._database.read() as connection:
            return [TurnSize(*row) for row in await connection.execute(query)]

    async def commit(
        self,
        expected: StoredConversation,
        turn: ConversationTurn,
        spent: UsageTotal,
        request: RequestKey,
    ) -> None:
        """Append a turn to its conversation.

        Args:
            expected: the conversation when the turn was requested.
            turn: the exchange.
            spent: its usage.
            request: the idempotency key.

        Raises:
            ConflictError: another writer appended or rewound turns meanwhile (code STALE_TURN).
            NotFoundError: the conversation was deleted.
        """
        conversation_id, number = expected.conversation_id, expected.turn_count + 1
        async with self._database.write(f"conversation {conversation_id}") as connection:
            conversation = await _load_conversation(connection, conversation_id)
            # The count alone is not enough: turns may have been rewound and replaced.
            if (conversation.turn_count, conversation.updated) != (expected.turn_count, expected.updated):
                raise stale_turn_error(conversation_id, conversation.turn_count)
            now, size = self._now(), estimate_turn_size(turn.user_messages, turn.completion.message)
            await connection.execute(
                insert(_turn_table).values(
                    conversation_id=conversation_id,
                    number=number,
                    turn=encode_turn(turn),
                    said_tokens=size.user_tokens,
                    answer_tokens=size.answer_tokens,
                    may_be_first=size.may_be_first,
                    committed=now,
                ),
            )
            await _update_conversation(
                connection,
                conversation_id,
                turn_count=number,
                spent=encode_usage_total(conversation.spent + spent),
                updated=now,
            )
            await self._record_request(connection, request, conversation_id, number)

    async def add_usage(self, conversation_id: str, spent: UsageTotal) -> None:
        """Add the usage of a turn that was not stored."""
        async with self._database.write(f"conversation {conversation_id}") as connection:
            conversation = await _load_conversation(connection, conversation_id)
            await _update_conversation(
                connection,
                conversation_id,
                spent=encode_usage_total(conversation.spent + spent),
            )

    async def fork(
        self,
        conversation_id: str,
        new_id: str,
        turn_count: int | None,
        request: RequestKey,
    ) -> StoredConversation:
        """Create a conversation with the first turns of another one.

        Raises:
            InvalidArgumentError: the other one has fewer turns.
            NotFoundError: the conversation does not exist.
        """
        async with self._database.write(f"conversation {conversation_id}") as connection:
            done = await self._find_by_request(connection, request)
            if done is not None:
                return await _load_conversation(connection, done.conversation_id)
            parent = await _load_conversation(connection, conversation_id)
            count = parent.turn_count if turn_count is None else turn_count
            _check_turn_count(count, parent)
            now = self._now()
            fork = StoredConversation(new_id, parent.charter, now, now, count, parent.conversation_id, count)
            await connection.execute(insert(_conversation_table).values(_to_row(fork)))
            columns = [column for column in _turn_table.c if column.name != "conversation_id"]
            shared = select(literal(new_id), *columns).where(
                _turn_table.c.conversation_id == conversation_id,
                _turn_table.c.number <= count,
            )
            names = ["conversation_id", *(column.name for column in columns)]
            await connection.execute(insert(_turn_table).from_select(names, shared))
            await self._record_request(connection, request, new_id)
        return fork

    async def rewind(
        self,
        conversation_id: str,
        turn_count: int,
        expected_turn_count: int | None,
        request: RequestKey,
    ) -> StoredConversation:
        """Remove the last turns of a conversation.

        Raises:
            ConflictError: it does not have the expected number of turns (code STALE_TURN).
            InvalidArgumentError: it has fewer turns than should remain.
            NotFoundError: the conversation does not exist.
        """
        async with self._database.write(f"conversation {conversation_id}") as connection:
            conversation = await _load_conversation(connection, conversation_id)
            if await self._find_by_request(connection, request) is not None:
                return conversation
            if expected_turn_count is not None and expected_turn_count != conversation.turn_count:
                raise stale_turn_error(conversation_id, conversation.turn_count)
            _check_turn_count(turn_count, conversation)
            await connection.execute(
                delete(_turn_table).where(
                    _turn_table.c.conversation_id == conversation_id,
                    _turn_table.c.number > turn_count,
                ),
            )
            mine = (_request_table.c.conversation_id == conversation_id) & (
                _request_table.c.turn > turn_count
            )
            await connection.execute(update(_request_table).where(mine).values(turn=0))
            await _update_conversation(
                connection,
                conversation_id,
                turn_count=turn_count,
                updated=self._now(),
            )
            await self._record_request(connection, request, conversation_id)
            return await _load_conversation(connection, conversation_id)

    async def delete(self, conversation_id: str, request: RequestKey) -> None:
        """Delete a conversation with its turns; its forks have their own copies.

        Raises:
            NotFoundError: the conversation does not exist.
        """
        async with self._database.write(f"conversation {conversation_id}") as connection:
            if await self._find_by_request(connection, request) is not None:
                return
            mine = _conversation_table.c.conversation_id == conversation_id
            gone = await connection.execute(delete(_conversation_table).where(mine))
            if not gone.rowcount:
                _raise_not_found(conversation_id)
            await self._record_request(connection, request, conversation_id)

    async def _find_by_request(
        self,
        connection: AsyncConnection,
        request: RequestKey,
    ) -> IdempotentResult | None:
        row = await self._requests.find(connection, request)
        return None if row is None else IdempotentResult(row.conversation_id, row.turn)

    async def _record_request(
        self,
        connection: AsyncConnection,
        request: RequestKey,
        conversation_id: str,
        turn: int = 0,
    ) -> None:
        await self._requests.record(connection, request, conversation_id=conversation_id, turn=turn)


async def _load_conversation(connection: AsyncConnection, conversation_id: str) -> StoredConversation:
    query = select(*_FIELDS).where(_conversation_table.c.conversation_id == conversation_id)
    row = (await connection.execute(query)).one_or_none()
    return _raise_not_found(conversation_id) if row is None else _from_row(row)


async def _update_conversation(connection: AsyncConnection, conversation_id: str, **values: Any) -> None:
    mine = _conversation_table.c.conversation_id == conversation_id
    await connection.execute(update(_conversation_table).where(mine).values(**values))


def _to_row(conversation: StoredConversation) -> dict[str, Any]:
    plain = {name: getattr(conversation, name) for name in StoredConversation.__dataclass_fields__}
    written = {
        "charter": encode_config(conversation.charter),
        "spent": encode_usage_total(conversation.spent),
    }
    return plain | written


def _from_row(row: Row[Any]) -> StoredConversation:
    plain = {name: getattr(row, name) for name in StoredConversation.__dataclass_fields__}
    return StoredConversation(
        **plain | {"charter": decode_config(row.charter), "spent": decode_usage_total(row.spent)},
    )


def _check_turn_count(turn_count: int, conversation: StoredConversation) -> None:
    if not 0 <= turn_count <= conversation.turn_count:
        raise field_error(".turn_count", f"must be from 0 to {conversation.turn_count}, the number of turns")


def stale_turn_error(conversation_id: str, turn_count: int) -> ConflictError:
    """Return the error of a change that expected another length of the conversation."""
    return ConflictError(
        f"conversation changed: it has {turn_count} turns; read it again, then retry",
        code="STALE_TURN",
        details={"conversation_id": conversation_id, "turn_count": str(turn_count)},
    )


def _raise_not_found(conversation_id: str) -> NoReturn:
    raise NotFoundError(
        f"conversation_id: unknown conversation: '{conversation_id[:64]}'",
        code="UNKNOWN_CONVERSATION",
    )
