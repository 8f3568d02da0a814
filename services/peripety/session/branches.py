"""Branches: forks and rewinds of sessions, earlier states, and comparison of two sessions.

A rewind does not wait for a running turn. That turn fails, as it finds its session changed at commit. An
earlier state is replayed from the nearest snapshot. A comparison shows divergent turns and state
differences as seen by one viewer.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.core.call_context import now_micros
from peripety.core.concurrency import run_in_thread_if_large
from peripety.core.validation import PagePosition, decode_page_token, make_page, resolve_page_size
from peripety.engine import ABSENT
from peripety.errors import ConflictError, InternalError, NotFoundError, field_error
from peripety.gateway.types.response import UsageTotal
from peripety.session import memory
from peripety.session.branch_types import BranchComparison, DivergentTurn, StateDifference
from peripety.session.session_view import project_session
from peripety.session.turn_transaction import replay_turn, with_seed
from peripety.session.types import ForkOrigin
from peripety.session.validation import check_comparison, check_fork, check_rewind
from peripety.session.visibility import TurnView, project_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine import Program
    from peripety.session.branch_types import CompareRequest, ForkRequest, RewindRequest
    from peripety.session.session_view import Ruleset, RulesetCache, SessionView
    from peripety.session.store.session_store import ReplayStart, SessionStore
    from peripety.session.store.statements import TurnEnd
    from peripety.session.types import Session
    from peripety.session.visibility import MessageLimit, ViewerProjection


# Size of a difference in a message apart from its path and its values.
_DIFFERENCE_BYTES = 32


async def compare(
    store: SessionStore,
    rulesets: RulesetCache,
    message_limit: MessageLimit,
    request: CompareRequest,
) -> BranchComparison:
    """Return a page of the comparison of two sessions.

    Raises:
        InvalidArgumentError: they play different versions, or the page size or token is invalid.
        NotFoundError: a session or entity does not exist.
    """
    size, token = resolve_page_size(request.page_size), decode_page_token(request.page_token)
    here = await store.get_session(request.session_id)
    there = await store.get_session(request.other_session_id)
    if here.spec_hash != there.spec_hash:
        raise field_error(
            ".other_session_id",
            "plays another scenario version; compare sessions of the same version",
        )
    ruleset = await rulesets.get(here.spec_hash)
    view = ruleset.projector.for_viewer(request.pov)
    common = await store.common_turn(here.session_id, there.session_id)
    differing: tuple[StateDifference, ...] = ()
    if token is None:
        differing = await asyncio.to_thread(_state_differences, ruleset, view, here, there)
    after = max(common, token.number if token else 0)
    turns = [
        DivergentTurn(number, *pair)
        for number, pair in enumerate(
            zip_longest(
                await _project_turns(store, ruleset, view, here, after, size + 1),
                await _project_turns(store, ruleset, view, there, after, size + 1),
            ),
            after + 1,
        )
    ]
    fitting = await asyncio.to_thread(_count_fitting, message_limit, differing, turns[:size])
    page = make_page(turns, fitting, lambda turn: PagePosition(turn.turn))
    return BranchComparison(common, differing, page.items, page.next_page_token)


async def _project_turns(
    store: SessionStore,
    ruleset: Ruleset,
    view: ViewerProjection,
    session: Session,
    after: int,
    limit: int,
) -> list[TurnView]:
    return [
        TurnView(turn, tuple(project_turn(session, ruleset.spec, view, turn)))
        for turn in await store.list_turns(session.session_id, after, limit)
    ]


def _count_fitting(
    message_limit: MessageLimit,
    differing: tuple[StateDifference, ...],
    turns: list[DivergentTurn],
) -> int:
    """Return the number of turns that fit in one message after the differences."""
    taken = sum(_DIFFERENCE_BYTES + sum(map(len, _encoded_values(difference))) for difference in differing)
    groups = [[turn for turn in (pair.here, pair.there) if turn is not None] for pair in turns]
    return message_limit.count_fitting(groups, taken)


def _encoded_values(difference: StateDifference) -> Iterator[bytes]:
    yield difference.path.encode()
    yield from (
        engine.canonicalize(value) for value in (difference.here, difference.there) if value is not ABSENT
    )


def _state_differences(
    ruleset: Ruleset,
    view: ViewerProjection,
    here: Session,
    there: Session,
) -> tuple[StateDifference, ...]:
    one, other = (
        view.project_state(ruleset.program.load_state(session.snapshot).tree()) for session in (here, there)
    )
    return tuple(diff_trees(one, other))


def diff_trees(here: Any, there: Any, path: tuple[str, ...] = ("state",)) -> Iterator[StateDifference]:
    """Yield the differences of two trees value by value, in path order; an array is one value."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in sorted(here.keys() | there.keys()):
            yield from diff_trees(here.get(name, ABSENT), there.get(name, ABSENT), (*path, name))
    elif here is ABSENT or there is ABSENT or engine.canonicalize(here) != engine.canonicalize(there):
        yield StateDifference(engine.format_path(path), here, there)


async def state_at(store: SessionStore, rulesets: RulesetCache, session_id: str, turn: int) -> Session:
    """Return a session as it was after a turn: its seed, memories, hashes and last sequence at that time.

    Properties of the session as a whole are the current ones: id, line, usage, narrator, table and times. If
    the next turn was the first one under another seed, that seed is set.

    Args:
        store: stores the session.
        rulesets: the programs of scenarios.
        session_id: the session.
        turn: the turn, 0 for the start.

    Raises:
        NotFoundError: the session does not exist or has no such turn (`UNKNOWN_TURN`).
        InternalError: the replayed turns differ from the recorded ones.
    """
    past = await store.load_replay_start(session_id, turn)
    if past is None:
        raise NotFoundError(
            f"turn: the session has not reached turn {turn}; use an earlier one",
            code="UNKNOWN_TURN",
        )
    if past.session.turn == turn:
        return past.session
    ruleset = await rulesets.get(past.session.spec_hash)
    return await asyncio.to_thread(_replay, ruleset.program, past)


def _replay(program: Program, past: ReplayStart) -> Session:
    snapshot, memories = past.snapshot, past.memories
    if snapshot is None:
        snapshot = program.new_state(past.session.first_seed).to_json()
    for number, (record, changes) in enumerate(past.records, past.start + 1):
        played = replay_turn(program, snapshot, engine.loads(record))
        if played.record != record:
            raise InternalError(f"replay of turn {number} of a session differs from its record")
        snapshot, memories = played.snapshot, memory.apply_diff(memories, changes)
    then = (
        _with_turn_end(past.session, past.turn, past.end)
        if past.end
        else _before_first_turn(program, past.session)
    )
    then = replace(then, memories=memories, due=None)
    next_seed = None if past.next_record is None else json.loads(past.next_record).get("seed")
    if next_seed is not None:
        return replace(then, snapshot=with_seed(snapshot, next_seed), seed=next_seed, reseeded=True)
    seed = int(json.loads(snapshot)["seed"])
    return replace(then, snapshot=snapshot, seed=seed, reseeded=False)


def _with_turn_end(session: Session, turn: int, end: TurnEnd) -> Session:
    """Return the session with the recorded end of a turn."""
    return replace(
        session,
        turn=turn,
        status=end.committed.status,
        state_hash=end.committed.state_hash,
        chain_hash=end.committed.chain_hash,
        last_sequence=end.sequence,
    )


def _before_first_turn(program: Program, session: Session) -> Session:
    """Return the session before its first turn."""
    state = program.new_state(session.first_seed)
    return replace(
        session,
        turn=0,
        status=state.status,
        state_hash=state.hash(),
        chain_hash=engine.start_hash_chain(session.first_seed, session.spec_hash),
        last_sequence=0,
    )


class BranchManager:
    """Forks, rewinds and comparisons of sessions.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        message_limit: size limit of a page of turns.
    """

    def __init__(self, store: SessionStore, rulesets: RulesetCache, message_limit: MessageLimit) -> None:
        self._store = store
        self._rulesets = rulesets
        self._message_limit = message_limit

    async def fork(self, request: ForkRequest) -> SessionView:
        """Create a session that shares the first turns of another; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session, turn or entity does not exist.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: the turn was rewound meanwhile.
        """
        check_fork(request)
        named = request.request_key()
        session, made = await self._store.find_fork_or_parent(named, request.session_id)
        if not made:
            ruleset = await self._rulesets.get(session.spec_hash)
            ruleset.projector.for_viewer(request.pov)
            if request.turn is not None and request.turn != session.turn:
                session = await state_at(self._store, self._rulesets, request.session_id, request.turn)
            fork = _make_fork(ruleset.program, session, request.seed)
            session = await self._store.fork(fork, request.session_id, named)
        return await self._project(session, request.pov)

    async def rewind(self, request: RewindRequest) -> SessionView:
        """Undo the last turns of a session; idempotent by request id.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session or entity does not exist.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: `STALE_TURN`: the session is not at the expected turn.
        """
        check_rewind(request)
        named = request.request_key()
        now = await self._store.get_session(request.session_id)
        (await self._rulesets.get(now.spec_hash)).projector.for_viewer(request.pov)
        if await self._store.is_rewound_by_request(request.session_id, named):
            now = await self._store.get_session(request.session_id)  # a concurrent retry may have won
        else:
            if now.turn != request.expected_turn:
                raise ConflictError(
                    f"expected_turn is {request.expected_turn}, but the session is at {now.turn};"
                    " read the session again and continue from there",
                    code="STALE_TURN",
                    details={"turn": str(now.turn), "expected_turn": str(request.expected_turn)},
                )
            then = await self._state_before(now, request.turn)
            now = await self._store.rewind(now, _make_rewound(now, then), named)
        return await self._project(now, request.pov)

    async def compare(self, request: CompareRequest) -> BranchComparison:
        """Compare two sessions: their last common turn, and the differences since.

        Raises:
            InvalidArgumentError: a field is invalid, or they play different versions.
            NotFoundError: a session or entity does not exist.
        """
        check_comparison(request)
        return await compare(self._store, self._rulesets, self._message_limit, request)

    async def _state_before(self, now: Session, turn: int) -> Session:
        """Return a session as it was at an earlier turn."""
        try:
            return await state_at(self._store, self._rulesets, now.session_id, turn)
        except NotFoundError as error:
            if error.code != "UNKNOWN_TURN":
                raise
            raise ConflictError(
                "session was rewound by another request; read it again and retry",
                code="STALE_TURN",
            ) from None

    async def _project(self, session: Session, pov: str | None) -> SessionView:
        ruleset = await self._rulesets.get(session.spec_hash)
        return await run_in_thread_if_large(
            lambda: project_session(session, ruleset, pov),
            len(session.snapshot),
        )


def _make_fork(program: Program, parent: Session, seed: int | None) -> Session:
    """Return a new session that continues from the state of another, optionally under another seed."""
    now = now_micros()
    fork = replace(
        parent,
        session_id=str(uuid.uuid4()),
        line_id=str(uuid.uuid4()),
        parent=ForkOrigin(parent.session_id, parent.turn),
        usage=UsageTotal(),
        created=now,
        updated=now,
        due=parent.next_deadline(now),
    )
    if seed is None or seed == parent.seed:
        return fork
    snapshot = with_seed(parent.snapshot, seed)
    if parent.turn:
        return replace(fork, snapshot=snapshot, seed=seed, reseeded=True)
    # No turn was played under the old seed, so the hash chain can start with the new one.
    return replace(
        fork,
        snapshot=snapshot,
        seed=seed,
        first_seed=seed,
        chain_hash=engine.start_hash_chain(seed, program.spec_hash),
    )


def _make_rewound(now: Session, then: Session) -> Session:
    """Return a session reset to an earlier turn; the rewind is an event with the next sequence."""
    parent = now.parent and replace(now.parent, turn=min(now.parent.turn, then.turn))
    moment = now_micros()
    return replace(
        then,
        last_sequence=now.last_sequence + 1,
        updated=moment,
        due=then.next_deadline(moment),
        line_id=str(uuid.uuid4()),
        usage=now.usage,
        parent=parent,
    )
