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

from peripety.durable.requests import RequestLog, request_table
from peripety.errors import ConflictError, NotFoundError
from peripety.gateway.conversations.model import CommittedTurn, Done, StoredConversation, size_of
from peripety.gateway.conversations.window import TurnSize
from peripety.gateway.conversations.writing import (
    read_charter,
    read_spent,
    read_turn,
    write_charter,
    write_spent,
    write_turn,
)
from peripety.requests import refuse
from peripety.storage import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.durable.requests import Request
    from peripety.gateway.conversations.conversation import Turn
    from peripety.gateway.model import Spent
    from peripety.storage import Database

__all__ = ["ConversationStore", "stale"]

_conversations = Table(
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

_turns = Table(
    "conversation_turns",
    METADATA,
    Column(
        "conversation_id",
        Text,
        ForeignKey(_conversations.c.conversation_id, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("number", BigInteger, primary_key=True),
    Column("turn", Text, nullable=False),
    Column("said_tokens", BigInteger, nullable=False),
    Column("answer_tokens", BigInteger, nullable=False),
    Column("may_be_first", Boolean, nullable=False),
    Column("committed", BigInteger, nullable=False),
)

_requests = request_table(
    "conversation_requests",
    Column("conversation_id", Text, nullable=False),
    Column("turn", BigInteger, nullable=False),
)

_FIELDS = list(_conversations.c)


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
        self._log = RequestLog(_requests, now)

    async def done_by(self, request: Request) -> Done | None:
        """Return the effect of an earlier request with the same id, if there is one.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.read() as connection:
            return await self._done_by(connection, request)

    async def create(self, conversation: StoredConversation, request: Request) -> StoredConversation:
        """Store a new conversation; if the request already created one, return that."""
        async with self._database.write(f"request {request.request_id}") as connection:
            done = await self._done_by(connection, request)
            if done is not None:
                return await _read(connection, done.conversation_id)
            await connection.execute(insert(_conversations).values(_row(conversation)))
            await self._record(connection, request, conversation.conversation_id)
        return conversation

    async def get(self, conversation_id: str) -> StoredConversation:
        """Return a conversation.

        Raises:
            NotFoundError: it does not exist.
        """
        async with self._database.read() as connection:
            return await _read(connection, conversation_id)

    async def newest(self, before: tuple[Any, ...] | None, limit: int) -> list[StoredConversation]:
        """Return conversations, newest first.

        Args:
            before: creation time and id of the last conversation of the previous page.
            limit: the maximum number of conversations.
        """
        columns = (_conversations.c.created, _conversations.c.conversation_id)
        query = select(*_FIELDS).order_by(*(column.desc() for column in columns))
        if before is not None:
            query = query.where(tuple_(*columns) < before)
        async with self._database.read() as connection:
            return [_conversation(row) for row in await connection.execute(query.limit(limit))]

    async def turns(
        self, conversation_id: str, after: int = 0, limit: int | None = None
    ) -> list[CommittedTurn]:
        """Return the turns after a number, oldest first."""
        query = select(_turns).where(_turns.c.conversation_id == conversation_id, _turns.c.number > after)
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(_turns.c.number).limit(limit))
            return [CommittedTurn(row.number, read_turn(row.turn), row.committed) for row in rows]

    async def sizes(self, conversation_id: str) -> list[TurnSize]:
        """Return the estimated prompt size of each turn, oldest first."""
        query = select(_turns.c.said_tokens, _turns.c.answer_tokens, _turns.c.may_be_first)
        query = query.where(_turns.c.conversation_id == conversation_id).order_by(_turns.c.number)
        async with self._database.read() as connection:
            return [TurnSize(*row) for row in await connection.execute(query)]

    async def commit(self, asked: StoredConversation, turn: Turn, spent: Spent, request: Request) -> None:
        """Append a turn to its conversation.

        Args:
            asked: the conversation when the turn was requested.
            turn: the exchange.
            spent: its usage.
            request: the idempotency key.

        Raises:
            ConflictError: another writer appended or rewound turns meanwhile (code STALE_TURN).
            NotFoundError: the conversation was deleted.
        """
        conversation_id, number = asked.conversation_id, asked.turn_count + 1
        async with self._database.write(f"conversation {conversation_id}") as connection:
            conversation = await _read(connection, conversation_id)
            # The count alone is not enough: turns may have been rewound and replaced.
            if (conversation.turn_count, conversation.updated) != (asked.turn_count, asked.updated):
                raise stale(conversation_id, conversation.turn_count)
            now, size = self._now(), size_of(turn.said, turn.completion.message)
            await connection.execute(
                insert(_turns).values(
                    conversation_id=conversation_id,
                    number=number,
                    turn=write_turn(turn),
                    said_tokens=size.said,
                    answer_tokens=size.answered,
                    may_be_first=size.may_be_first,
                    committed=now,
                )
            )
            await _change(
                connection,
                conversation_id,
                turn_count=number,
                spent=write_spent(conversation.spent + spent),
                updated=now,
            )
            await self._record(connection, request, conversation_id, number)

    async def spend(self, conversation_id: str, spent: Spent) -> None:
        """Add the usage of a turn that was not stored."""
        async with self._database.write(f"conversation {conversation_id}") as connection:
            conversation = await _read(connection, conversation_id)
            await _change(connection, conversation_id, spent=write_spent(conversation.spent + spent))

    async def fork(
        self, conversation_id: str, new_id: str, turn_count: int | None, request: Request
    ) -> StoredConversation:
        """Create a conversation with the first turns of another one.

        Raises:
            InvalidArgumentError: the other one has fewer turns.
            NotFoundError: the conversation does not exist.
        """
        async with self._database.write(f"conversation {conversation_id}") as connection:
            done = await self._done_by(connection, request)
            if done is not None:
                return await _read(connection, done.conversation_id)
            parent = await _read(connection, conversation_id)
            count = parent.turn_count if turn_count is None else turn_count
            _check_count(count, parent)
            now = self._now()
            fork = StoredConversation(new_id, parent.charter, now, now, count, parent.conversation_id, count)
            await connection.execute(insert(_conversations).values(_row(fork)))
            columns = [column for column in _turns.c if column.name != "conversation_id"]
            shared = select(literal(new_id), *columns).where(
                _turns.c.conversation_id == conversation_id, _turns.c.number <= count
            )
            names = ["conversation_id", *(column.name for column in columns)]
            await connection.execute(insert(_turns).from_select(names, shared))
            await self._record(connection, request, new_id)
        return fork

    async def rewind(
        self, conversation_id: str, turn_count: int, expected: int | None, request: Request
    ) -> StoredConversation:
        """Remove the last turns of a conversation.

        Raises:
            ConflictError: it does not have the expected number of turns (code STALE_TURN).
            InvalidArgumentError: it has fewer turns than should remain.
            NotFoundError: the conversation does not exist.
        """
        async with self._database.write(f"conversation {conversation_id}") as connection:
            conversation = await _read(connection, conversation_id)
            if await self._done_by(connection, request) is not None:
                return conversation
            if expected is not None and expected != conversation.turn_count:
                raise stale(conversation_id, conversation.turn_count)
            _check_count(turn_count, conversation)
            await connection.execute(
                delete(_turns).where(
                    _turns.c.conversation_id == conversation_id, _turns.c.number > turn_count
                )
            )
            mine = (_requests.c.conversation_id == conversation_id) & (_requests.c.turn > turn_count)
            await connection.execute(update(_requests).where(mine).values(turn=0))
            await _change(connection, conversation_id, turn_count=turn_count, updated=self._now())
            await self._record(connection, request, conversation_id)
            return await _read(connection, conversation_id)

    async def delete(self, conversation_id: str, request: Request) -> None:
        """Delete a conversation with its turns; its forks have their own copies.

        Raises:
            NotFoundError: the conversation does not exist.
        """
        async with self._database.write(f"conversation {conversation_id}") as connection:
            if await self._done_by(connection, request) is not None:
                return
            mine = _conversations.c.conversation_id == conversation_id
            gone = await connection.execute(delete(_conversations).where(mine))
            if not gone.rowcount:
                _unknown(conversation_id)
            await self._record(connection, request, conversation_id)

    async def _done_by(self, connection: AsyncConnection, request: Request) -> Done | None:
        row = await self._log.find(connection, request)
        return None if row is None else Done(row.conversation_id, row.turn)

    async def _record(
        self, connection: AsyncConnection, request: Request, conversation_id: str, turn: int = 0
    ) -> None:
        await self._log.record(connection, request, conversation_id=conversation_id, turn=turn)


async def _read(connection: AsyncConnection, conversation_id: str) -> StoredConversation:
    query = select(*_FIELDS).where(_conversations.c.conversation_id == conversation_id)
    row = (await connection.execute(query)).one_or_none()
    return _unknown(conversation_id) if row is None else _conversation(row)


async def _change(connection: AsyncConnection, conversation_id: str, **values: Any) -> None:
    mine = _conversations.c.conversation_id == conversation_id
    await connection.execute(update(_conversations).where(mine).values(**values))


def _row(conversation: StoredConversation) -> dict[str, Any]:
    plain = {name: getattr(conversation, name) for name in StoredConversation.__dataclass_fields__}
    written = {"charter": write_charter(conversation.charter), "spent": write_spent(conversation.spent)}
    return plain | written


def _conversation(row: Row[Any]) -> StoredConversation:
    plain = {name: getattr(row, name) for name in StoredConversation.__dataclass_fields__}
    return StoredConversation(
        **plain | {"charter": read_charter(row.charter), "spent": read_spent(row.spent)}
    )


def _check_count(turn_count: int, conversation: StoredConversation) -> None:
    if not 0 <= turn_count <= conversation.turn_count:
        raise refuse(".turn_count", f"must be from 0 to {conversation.turn_count}, the number of turns")


def stale(conversation_id: str, turn_count: int) -> ConflictError:
    """Return the error of a change that expected another length of the conversation."""
    return ConflictError(
        f"conversation changed: it has {turn_count} turns; read it again, then retry",
        code="STALE_TURN",
        details={"conversation_id": conversation_id, "turn_count": str(turn_count)},
    )


def _unknown(conversation_id: str) -> NoReturn:
    raise NotFoundError(
        f".conversation_id: unknown conversation: '{conversation_id[:64]}'", code="UNKNOWN_CONVERSATION"
    )
