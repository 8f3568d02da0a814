"""Sessions in a database: replay, export and import."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from peripety import engine
from peripety.certification.types import certificate_hash, encode
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from peripety.session.branch_types import ForkRequest, RewindRequest
from peripety.session.bundles.exporter import ReplayCompleted, SessionExporter
from peripety.session.bundles.format import BundleError
from peripety.session.bundles.importer import SessionImporter
from peripety.session.bundles.verifier import ReplayedTurn
from peripety.session.store import history_segments
from peripety.session.types import (
    NarratorOptions,
    NewSession,
    PlayerAction,
    SeatConfig,
    SessionListing,
    SessionRequestKey,
)
from peripety.session.types import Seat as Place
from support.engine.specs import action, document, event
from support.engine.specs import as_bytes as document_of
from support.gateway.fake_gateway import FakeGateway, calling
from support.scenario.batches import certified, contest
from support.session.bundles import Plan, bundle_of, play, resealed, verdict_on
from support.session.sessions import ROOM, OneScenario, new_id, outcome, rulesets, standing_rows, table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from peripety.session.session_manager import SessionManager
    from peripety.session.types import CommittedTurn, Session
    from support.session.sessions import Table as Game


SPEC = document(
    entities=[{"id": "p", "playable": True}, {"id": "q"}],
    state={"a": 10, "private": {"p": {"x": 1}}},
    actions=[action("act", [{"op": "inc", "path": "state.a", "value": 1}])],
    random_events=[event(f"e{n}", [{"op": "dec", "path": "state.a", "value": 1}]) for n in range(3)],
)
TOLD = outcome(
    "It is told.",
    visible_dialogue=[{"entity_id": "q", "utterance": "Words."}],
    hidden_memory_updates=[
        {"scope": "s", "target_id": "p", "content": "Kept.", "visibility": "private"},
    ],
)


async def played(game: Game, turns: int) -> None:
    first = (await game.now()).session.turn + 1
    for turn in range(first, first + turns):
        await game.play(turn, "act", pov="p")


async def exported(sessions: SessionManager, session_id: str, last_turn: int = 0) -> bytes:
    return b"".join([piece async for piece in sessions.exporter.export(session_id, last_turn)])


async def replayed(game: Game, first: int = 0, last: int = 0) -> tuple[list[ReplayedTurn], ReplayCompleted]:
    *turns, completed = [item async for item in game.sessions.exporter.replay(game.session_id, first, last)]
    assert isinstance(completed, ReplayCompleted)
    return [turn for turn in turns if isinstance(turn, ReplayedTurn)], completed


async def pieces(bundle: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(bundle), size):
        yield bundle[start : start + size]


async def test_a_session_that_is_played_again_comes_to_what_is_recorded(database_url: str) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 20)
        turns, completed = await replayed(game)
        assert [turn.turn for turn in turns] == [*range(1, 21)]
        assert all(turn.matches for turn in turns)
        assert completed == ReplayCompleted(20, 0, engine.BACKEND)
        assert turns[-1].computed_chain_hash == (await game.now()).session.chain_hash
        part, completed = await replayed(game, 17, 18)
        assert ([turn.turn for turn in part], completed.turns) == ([17, 18], 2)


async def test_a_replay_of_turns_that_are_not_there_names_the_field(database_url: str) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 2)
        for first, last, field in ((0, 3, "last_turn"), (3, 2, "first_turn"), (-1, 0, "first_turn")):
            with pytest.raises(InvalidArgumentError, match=rf"^{field} must be from 0 to 2"):
                await replayed(game, first, last)
        with pytest.raises(NotFoundError):
            await exported(game.sessions, new_id())


@pytest.mark.parametrize("damage", [(b'"after":12', b'"after":13'), (b"{", b"[{"), (b'"actions"', b'"acts"')])
async def test_a_record_that_was_damaged_is_found_by_its_turn(
    database_url: str,
    damage: tuple[bytes, bytes],
) -> None:
    async with table(database_url, document()) as game:
        await played_without(game, 3)
        turn = await game.store.find_turn(game.session_id, 2)
        assert turn is not None
        # Below everything that would refuse it.
        async with game.database.write() as connection:
            change = text("UPDATE session_turns SET record = :record WHERE turn = 2")
            await connection.execute(change, {"record": turn.record.replace(*damage)})
        turns, completed = await replayed(game)
        assert [turn.matches for turn in turns][:2] == [True, False]
        assert completed.mismatches >= 1


async def played_without(game: Game, turns: int) -> None:
    for turn in range(1, turns + 1):
        await game.play(turn, "act")


async def test_what_was_exported_is_right_and_the_same_every_time(database_url: str) -> None:
    async with table(database_url, SPEC, FakeGateway(TOLD)) as game:
        await played(game, 18)
        bundle = await exported(game.sessions, game.session_id)
        session = (await game.now()).session
        assert await exported(game.sessions, game.session_id) == bundle
    verdict = verdict_on(bundle)
    assert verdict.is_valid
    assert verdict.header is not None
    assert (verdict.turns, verdict.header.chain_hash) == (18, session.chain_hash)
    lines = bundle.splitlines()
    assert json.loads(lines[2])["memories"] == [
        {
            "turn": 1,
            "scope": "s",
            "owner": "p",
            "content": "Kept.",
            "visibility": "private",
            "audience": "p",
        },
    ]
    assert [event["utterance"] for event in json.loads(lines[2])["events"] if event["kind"] == "dialogue"]


async def test_what_a_narrator_did_with_its_tools_is_played_again_without_it(database_url: str) -> None:
    gateway = FakeGateway(
        calling(("roll", {"kind": "k", "difficulty": 5}), ("action:act", {})),
        outcome("Told.", state_changes=[{"op": "inc", "path": "state.a", "value": 1}]),
    )
    async with table(database_url, SPEC, gateway) as game:
        await game.play(1, input="I try it.", pov="p")
        turn = await game.store.find_turn(game.session_id, 1)
        assert turn is not None
        record = json.loads(turn.record)
        assert [len(record[name]) for name in ("actions", "rolls", "narrated")] == [1, 1, 1]
        _, completed = await replayed(game)
        assert completed.mismatches == 0
        assert verdict_on(await exported(game.sessions, game.session_id)).is_valid


async def test_an_export_may_end_at_an_earlier_turn(database_url: str) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 3)
        verdict = verdict_on(await exported(game.sessions, game.session_id, 2))
        assert verdict.is_valid
        assert verdict.turns == 2
        assert verdict.header is not None
        turn = await game.store.find_turn(game.session_id, 2)
        assert turn is not None
        assert verdict.header.chain_hash == turn.events[-1].chain_hash  # type: ignore[union-attr]


async def test_an_imported_session_is_the_same_and_goes_on(database_url: str) -> None:
    async with table(database_url, SPEC, FakeGateway(TOLD)) as game:
        await played(game, 20)
        before = (await game.now("p")).session
        bundle = await exported(game.sessions, game.session_id)
        seen = await game.sessions.import_bundle(new_id(), pieces(bundle))
        after = seen.session
        assert seen.viewer is None
        assert after.session_id != before.session_id
        same = ("scenario_id", "spec_hash", "seed", "turn", "snapshot", "chain_hash", "memories", "narrator")
        assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
        assert (after.usage, after.last_sequence, after.parent) == (before.usage, before.last_sequence, None)
        assert await exported(game.sessions, after.session_id) == bundle
        # Turns that were imported can be read, forked and rewound like those that were played here.
        past = await game.sessions.branches.fork(ForkRequest(new_id(), after.session_id, 17))
        assert past.session.turn == 17
        back = await game.sessions.rewind(RewindRequest(new_id(), after.session_id, 5, expected_turn=20))
        assert back.session.turn == 5
        twin = await game.sessions.import_bundle(new_id(), pieces(bundle))
        imported = type(game)(game.sessions, game.store, game.database, twin.session.session_id)
        await game.play(21, "act", pov="p")
        await imported.play(21, "act", pov="p")
        assert (await game.now()).session.chain_hash == (await imported.now()).session.chain_hash


async def test_a_fork_under_another_seed_is_exported_with_it_before_and_after_its_first_turn(
    database_url: str,
) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 2)
        fork = await game.sessions.branches.fork(ForkRequest(new_id(), game.session_id, seed=77))
        bundle = await exported(game.sessions, fork.session.session_id)
        taken_in = (await game.sessions.import_bundle(new_id(), pieces(bundle))).session
        assert (taken_in.seed, taken_in.reseeded, taken_in.first_seed) == (77, True, fork.session.first_seed)
        for session_id in (fork.session.session_id, taken_in.session_id):
            await type(game)(game.sessions, game.store, game.database, session_id).play(3, "act")
        chains = [
            (await game.sessions.get(session_id, None)).session.chain_hash
            for session_id in (fork.session.session_id, taken_in.session_id)
        ]
        assert chains[0] == chains[1]
        verdict = verdict_on(await exported(game.sessions, fork.session.session_id))
        assert verdict.is_valid
        assert verdict.header is not None
        assert verdict.header.next_seed is None


async def long_session(game: Game, turns: int, made: Callable[[], None] = lambda: None) -> Session:
    """Return a session with many turns that have the same events."""
    await played(game, 1)
    session = (await game.now()).session
    (turn,) = await game.store.list_turns(session.session_id, 0, 1)

    def past() -> Iterator[CommittedTurn]:
        for number in range(1, turns + 1):
            made()
            first = (number - 1) * len(turn.events) + 1
            yield replace(turn, turn=number, request_id=new_id(), first_sequence=first)

    ended = replace(session, turn=turns, last_sequence=turns * len(turn.events))
    new = replace(ended, session_id=new_id(), line_id=new_id())
    return await game.store.add(new, SPEC, SessionRequestKey(new_id(), ""), past())


async def test_the_event_loop_goes_on_while_a_long_past_is_stored(database_url: str) -> None:
    came_round: list[None] = []
    seen: list[int] = []
    loop = asyncio.get_running_loop()

    def made() -> None:
        seen.append(len(came_round))
        loop.call_soon_threadsafe(came_round.append, None)

    async with table(database_url, SPEC) as game:
        session = await long_session(game, 50, made)
        assert [one.turn for one in await game.store.list_turns(session.session_id, 0, 60)] == list(
            range(1, 51),
        )
    assert seen[0] < seen[-1]


@pytest.mark.parametrize("turns", [2, 256, 257, 600])
async def test_of_many_turns_those_are_deleted_that_nobody_needs_while_the_event_loop_goes_on(
    database_url: str,
    turns: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came_round: list[None] = []
    seen: list[int] = []
    cut = history_segments._delete_after

    async def noted(*arguments: Any) -> None:
        seen.append(len(came_round))
        asyncio.get_running_loop().call_soon(came_round.append, None)
        await cut(*arguments)

    monkeypatch.setattr(history_segments, "_delete_after", noted)
    async with table(database_url, SPEC) as game:
        session = await long_session(game, turns)
        back = replace(session, turn=1, last_sequence=session.last_sequence + 1, line_id=new_id())
        await game.store.rewind(session, back, SessionRequestKey(new_id(), ""))
        assert len(seen) == len(set(seen)) == 1 + (turns - 2) // 256
        rows = await standing_rows(game.database)
        assert rows["session_turns"] == 2
        await game.store.delete(session.session_id, new_id())
        assert (await standing_rows(game.database))["session_turns"] == 1


async def test_an_imported_table_with_little_time_goes_on_by_itself(database_url: str) -> None:
    seats = SeatConfig((Place("one", "p"),), seconds=3600.0)
    async with table(database_url, SPEC) as game:
        made = await game.sessions.create(NewSession(new_id(), "scenario", table=seats))
        bundle = await exported(game.sessions, made.session.session_id)
        session = (await game.sessions.import_bundle(new_id(), pieces(bundle))).session
        assert session.due == session.created + 3_600_000_000


async def test_an_import_is_made_once(database_url: str) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 2)
        bundle = await exported(game.sessions, game.session_id)
        request_id = new_id()
        first = await game.sessions.import_bundle(request_id, pieces(bundle))
        again = await game.sessions.import_bundle(request_id, pieces(bundle, 7))
        assert again.session == first.session
        with pytest.raises(AlreadyExistsError) as caught:
            await game.sessions.import_bundle(
                request_id,
                pieces(await exported(game.sessions, game.session_id, 1)),
            )
        assert caught.value.code == "REQUEST_ID_REUSED"
        with pytest.raises(InvalidArgumentError, match=r"^request_id"):
            await game.sessions.import_bundle("mine", pieces(bundle))


@pytest.mark.parametrize("line", [2, 3, 4])
async def test_of_a_bundle_that_is_not_right_nothing_is_stored(database_url: str, line: int) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 2)
        lines = (await exported(game.sessions, game.session_id)).splitlines()[:-1]
        lines[line - 1] = lines[line - 1].replace(b'"op":"inc"', b'"op":"dec"', 1)
        with pytest.raises(BundleError) as caught:
            await game.sessions.import_bundle(new_id(), pieces(resealed(lines)))
        assert caught.value.code == "BUNDLE_INVALID"
        assert caught.value.violations[0].field.startswith(f"line {line}")
        assert len((await game.sessions.list_sessions(SessionListing(), 0, "")).items) == 1


async def test_who_could_not_play_here_is_refused(database_url: str) -> None:
    game_of = play(engine.compile(SPEC), [Plan([PlayerAction("act", {})])])
    async with table(database_url, SPEC) as game:
        for header in (
            {"table": SeatConfig((Place("s", "q"),))},
            {"table": SeatConfig((Place("s", "none"),))},
            {"narrator": NarratorOptions(language="!")},
        ):
            with pytest.raises(BundleError) as caught:
                await game.sessions.import_bundle(new_id(), pieces(bundle_of(game_of, **header)))
            (defect,) = caught.value.issues
            assert (defect.line, defect.finding.code) == (1, "HEADER_INVALID")


async def test_a_bundle_that_is_too_large_is_refused_before_it_is_all_there(database_url: str) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"a" * 100

    async with table(database_url, SPEC) as game:
        with pytest.raises(ResourceExhaustedError) as caught:
            await SessionImporter(game.store, ROOM, max_bytes=1000).import_bundle(new_id(), endless())
    assert caught.value.code == "BUNDLE_TOO_LARGE"
    assert taken == 11


async def test_a_turn_that_no_message_of_this_server_can_hold_is_not_taken_in(database_url: str) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 1)
        bundle = await exported(game.sessions, game.session_id)
    async with table(database_url, SPEC, message_bytes=1100) as small:
        with pytest.raises(BundleError, match="does not fit into a message"):
            await small.sessions.import_bundle(new_id(), pieces(bundle))


@pytest.mark.slow(reason="plays a long session")
async def test_a_session_that_is_rewound_meanwhile_is_not_written_down_as_two(database_url: str) -> None:
    async with table(database_url, SPEC) as game:
        await played(game, 40)
        pages = game.sessions.exporter.replay(game.session_id, 0, 0)
        await anext(pages)
        await game.sessions.rewind(RewindRequest(new_id(), game.session_id, 3, expected_turn=40))
        with pytest.raises(ConflictError) as caught:
            [item async for item in pages]
        assert caught.value.code == "STALE_TURN"
        await played(game, 40)
        writing = game.sessions.exporter.export(game.session_id, 0)
        document = game.store.get_document

        async def rewound(spec_hash: str) -> bytes:
            await game.sessions.rewind(RewindRequest(new_id(), game.session_id, 3, expected_turn=43))
            await played(game, 41)
            return await document(spec_hash)

        game.store.get_document = rewound  # type: ignore[method-assign]
        with pytest.raises(ConflictError):
            [piece async for piece in writing]


async def test_a_bundle_has_the_certificate_of_its_scenario(database_url: str) -> None:
    spec = contest()
    certificate = encode(await certified(spec))
    async with table(database_url, document_of(spec)) as game:
        scenarios = OneScenario(document_of(spec), certificate)
        exporter = SessionExporter(game.store, rulesets(game.store), scenarios)
        bundle = b"".join([piece async for piece in exporter.export(game.session_id)])
        verdict = verdict_on(bundle)
        assert verdict.is_valid
        assert verdict.header is not None
        assert verdict.header.certificate_hash == certificate_hash(certificate)
        assert (await game.sessions.import_bundle(new_id(), pieces(bundle))).session.turn == 0
