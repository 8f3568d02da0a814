"""Sessions without a store, and their bundles: turns as a narrator may have had them played."""

from __future__ import annotations

import io
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.errors import PeripetyError
from peripety.gateway.types.response import UsageTotal
from peripety.session.bundles.format import BundledTurn, BundleHeader, BundleWriter
from peripety.session.bundles.verifier import BundleVerification
from peripety.session.events import Accepted, Committed, NarrativeChunk
from peripety.session.turn_transaction import TurnTransaction, with_seed
from peripety.session.types import DieRollRequest, NarratorOptions, PlayerAction, Resolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from peripety.session.bundles.verifier import ReplayedTurn, VerificationResult


@dataclass(frozen=True)
class Plan:
    """The actions of a turn; before it, the run may receive another seed."""

    actions: Sequence[PlayerAction] = ()
    rolls: Sequence[DieRollRequest] = ()
    narrated: Sequence[Mapping[str, Any]] = ()
    seed: int | None = None
    prose: str = "It is told."


@dataclass
class Game:
    """A session that was played: its header, and its turns."""

    program: engine.Program
    first_seed: int
    turns: list[BundledTurn] = field(default_factory=list)

    def header(self, **more: Any) -> BundleHeader:
        start = engine.start_hash_chain(self.first_seed, self.program.spec_hash)
        known: dict[str, Any] = {
            "scenario_id": "scenario",
            "spec_hash": self.program.spec_hash,
            "certificate_hash": None,
            "first_seed": self.first_seed,
            "next_seed": None,
            "turns": len(self.turns),
            "chain_hash": self.turns[-1].events[-1].chain_hash if self.turns else start,  # type: ignore[union-attr]
            "table": None,
            "narrator": NarratorOptions(),
        }
        return BundleHeader(**known | more)


def play(program: engine.Program, plans: Iterable[Plan], seed: int | None = None) -> Game:
    """Play as much of some turns as can be played; what the engine refuses is left out."""
    first_seed = program.spec["seed"] if seed is None else seed
    game = Game(program, first_seed)
    snapshot = program.new_state(first_seed).to_json()
    chain = engine.start_hash_chain(first_seed, program.spec_hash)
    for plan in plans:
        before = snapshot if plan.seed is None else with_seed(snapshot, plan.seed)
        board = TurnTransaction(program, before, new_seed=plan.seed)
        steps: list[Callable[[], Any]] = [
            *(partial(board.act, call) for call in plan.actions),
            *(partial(board.roll, die) for die in plan.rolls),
            partial(board.apply_narrator_changes, plan.narrated),
        ]
        for step in steps:
            with suppress(PeripetyError):
                step()
        try:
            played = board.finish()
        except PeripetyError:
            break
        chain = engine.extend_hash_chain(chain, played.record)
        request_id = _uuid(len(game.turns))
        committed = Committed(
            state_hash=played.state_hash,
            chain_hash=chain,
            status=played.world.status,
            legal_actions=played.legal_actions,
            usage=UsageTotal(),
            changes=played.changes,
            narrative=plan.prose,
            resolution=Resolution.NARRATED,
            model="fake/scripted",
            commit_time=1,
        )
        accepted = Accepted(_uuid(-1), request_id, tuple(plan.actions), "")
        game.turns.append(
            BundledTurn(
                record=engine.parse_canonical(played.record),
                request_id=request_id,
                pov=None,
                events=(accepted, *played.events, NarrativeChunk(plan.prose), committed),
            ),
        )
        snapshot = played.snapshot
        if played.world.status.kind != "ongoing":
            break
    return game


def bundle_of(game: Game, certificate: bytes | None = None, **header: Any) -> bytes:
    """The bundle of a session."""
    writer = BundleWriter()
    documents = [game.program.document, *([] if certificate is None else [certificate])]
    return b"".join(
        [
            writer.header(game.header(**header)),
            *map(writer.document, documents),
            *map(writer.turn, game.turns),
            writer.end(),
        ],
    )


def resealed(lines: Sequence[bytes]) -> bytes:
    """A bundle of these lines, all but its end, with an end that fits: the work of a forger."""
    writer = BundleWriter()
    return b"".join([*(writer.document(line) for line in lines), writer.end()])


def verified(
    bundle: bytes,
    compiled: Callable[[bytes], engine.Program] = engine.compile_canonical,
) -> tuple[list[ReplayedTurn], VerificationResult]:
    """Verify a bundle: return its turns, and the verdict."""
    verification = BundleVerification(io.BytesIO(bundle), compiled)
    turns = [replayed for _, replayed in verification.turns()]
    return turns, verification.result


def verdict_on(bundle: bytes) -> VerificationResult:
    """The verdict on a bundle."""
    return verified(bundle)[1]


def _uuid(number: int) -> str:
    return str(uuid.UUID(int=number + 1))
