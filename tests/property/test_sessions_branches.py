"""Forks, rewinds, turns and deletions in any order leave every other session as it was.

The model is a list of turns for each session. `PERIPETY_EXAMPLES` makes it longer.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from peripety.core.concurrency import closing
from peripety.core.storage.database import Database
from peripety.errors import FailedPreconditionError
from peripety.scenario.registry import ProgramCache
from peripety.session.branches import state_at
from peripety.session.events import Committed
from peripety.session.store.session_store import SessionStore
from peripety.session.store.turn_commit import SNAPSHOT_TURNS
from peripety.session.types import CommittedTurn, NewSession, RecordedRewind
from support.examples import example_count
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import (
    FATEFUL,
    OneScenario,
    forked,
    is_gone,
    new_id,
    outcome,
    rewound,
    rulesets,
    sessions_over,
    standing_rows,
    turn_for,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from peripety.session.types import Session, TurnRequest


EXAMPLES = max(5, example_count(150, times=1 / 15))
PROGRAMS = ProgramCache()
seeds = st.none() | st.integers(0, 9)
many = st.sampled_from([1, 1, 2, 3, SNAPSHOT_TURNS + 1])
calls = st.lists(st.sampled_from(["act", "other"]), max_size=2)


@dataclass
class Expected:
    """Expected content of a session."""

    turns: list[bytes] = field(default_factory=list)
    taken_back: list[TurnRequest] = field(default_factory=list)
    asked: list[TurnRequest] = field(default_factory=list)


class Branching(RuleBasedStateMachine):
    """Sessions of one database, and what they must be like."""

    names = Bundle("names")

    @initialize()
    def opens(self) -> None:
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.database = self.run(Database.open(f"sqlite:///{self.directory.name}/test.db"))
        self.store = SessionStore(self.database)
        self.sessions = sessions_over(self.store, OneScenario(FATEFUL), FakeGateway(outcome()))
        self.rulesets = rulesets(self.store, PROGRAMS)
        self.expected: dict[str, Expected] = {}

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def now(self, name: str) -> Session:
        session: Session = self.run(self.store.get_session(name))
        return session

    @rule(target=names, seed=seeds)
    def starts(self, seed: int | None) -> str:
        made = self.run(self.sessions.create(NewSession(new_id(), "scenario", seed=seed)))
        self.expected[made.session.session_id] = Expected()
        name: str = made.session.session_id
        return name

    @rule(name=names, actions=calls, count=many)
    def plays(self, name: str, actions: list[str], count: int) -> None:
        for _ in range(count):
            request = turn_for(self.now(name), *actions)
            committed = self.run(self.played(request))
            turn = self.run(self.store.find_turn(name, request.expected_turn))
            assert turn.events[-1].chain_hash == committed.chain_hash
            self.expected[name].turns.append(turn.record)
            self.expected[name].asked.append(request)

    async def played(self, request: TurnRequest) -> Committed:
        async with closing(self.sessions.turn_runner.run(request)) as events:
            last = [seen.event async for seen in events][-1]
        assert isinstance(last, Committed)
        return last

    @rule(target=names, name=names, back=st.integers(0, 40), seed=seeds)
    def forks(self, name: str, back: int, seed: int | None) -> str:
        turn = max(0, self.now(name).turn - back)
        fork = self.run(forked(self.sessions, name, turn, seed=seed)).session
        assert fork.turn == turn
        self.expected[fork.session_id] = Expected(self.expected[name].turns[:turn])
        name_of_fork: str = fork.session_id
        return name_of_fork

    @rule(name=names, back=st.integers(1, 40))
    def rewinds(self, name: str, back: int) -> None:
        now = self.now(name)
        if not now.turn:
            return
        turn = max(0, now.turn - back)
        then = self.run(rewound(self.sessions, name, turn)).session
        assert (then.turn, then.last_sequence) == (turn, now.last_sequence + 1)
        expected = self.expected[name]
        del expected.turns[turn:]
        expected.taken_back += [request for request in expected.asked if request.expected_turn > turn]
        expected.asked = [request for request in expected.asked if request.expected_turn <= turn]

    @rule(name=consumes(names))
    def deletes(self, name: str) -> None:
        self.run(self.sessions.delete(name, new_id()))
        assert self.run(is_gone(self.sessions, name))
        del self.expected[name]

    @rule(name=names, back=st.integers(0, 40))
    def looks_back(self, name: str, back: int) -> None:
        turn = max(0, self.now(name).turn - back)
        then = self.run(state_at(self.store, self.rulesets, name, turn))
        assert then.turn == turn

    @rule(name=names)
    def asks_again_for_what_was_taken_back(self, name: str) -> None:
        for request in self.expected[name].taken_back[-1:]:
            with pytest.raises(FailedPreconditionError) as caught:
                self.run(self.played(request))
            assert caught.value.code == "TURN_REWOUND"

    @rule(name=names, limit=st.integers(1, 9))
    def hears_what_happened(self, name: str, limit: int) -> None:
        heard: list[CommittedTurn | RecordedRewind] = []
        after = 0
        while page := self.run(self.store.list_history(name, after, limit)):
            heard += page
            assert len(page) <= limit
            last = page[-1]
            after = last.sequence if isinstance(last, RecordedRewind) else last.last_sequence
        turns: list[bytes] = []
        for one in heard:
            if isinstance(one, RecordedRewind):
                del turns[one.turn :]
            else:
                assert one.turn == len(turns) + 1
                turns.append(one.record)
        assert turns == self.expected[name].turns

    @invariant()
    def every_session_is_what_was_played_in_it(self) -> None:
        for name, expected in self.expected.items():
            turns = self.run(verified(self.store, name))
            assert [turn.record for turn in turns] == expected.turns

    def teardown(self) -> None:
        for name in self.expected:
            self.run(self.sessions.delete(name, new_id()))
        assert set(self.run(standing_rows(self.database)).values()) == {0}
        self.run(self.database.close())
        self.runner.close()
        self.directory.cleanup()


TestBranching = pytest.mark.slow(reason="plays many branching sessions")(Branching.TestCase)
TestBranching.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    # To explain a failure, it would trace every line of every example.
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
