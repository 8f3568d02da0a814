"""Scripted narrators of known quality, and the grades that the narrator's metrics give them."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.session.events import Committed
from peripety.session.narration.claims.checker import ClaimChecker
from peripety.session.narration.claims.conduct import find_misconduct
from peripety.session.narrator_metrics import NarratorMetrics, TurnMetrics
from peripety.session.types import Resolution
from support.engine.specs import action
from support.session.claims import first_document, lines_of
from support.session.recall import RecallNarrator
from support.session.sessions import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.gateway.types.request import GenerateRequest
    from support.session.claims import Case

TURNS = 8
MENTION_TURN = 2
NAMES = ("Abri", "Belno", "Cuvo", "Dasim", "Elora")
_MENTION = "I look at the first wall. From now on I call the first by the name of {}."
_QUESTION = "What did I call the first?"
_CONDUCT = ("tense", "schema", "thoughts", "playing_on")
_UNCHANGING = ("life", "presence", "possession")


@dataclass
class GradedNarrator(RecallNarrator):
    """A narrator that writes given sentences and may forget.

    Attributes:
        prose: the narrations, in rotation.
        forgets: True if it never answers a question of the player.
    """

    prose: Iterator[str] = iter(())
    forgets: bool = False

    def narrate(self, asked: str, request: GenerateRequest) -> str:
        """Return the narration of a turn."""
        told = next(self.prose)
        if not asked.endswith("?") or self.forgets:
            return told
        return f"{self.answer(asked, request)} {told}"


def narrators() -> dict[str, GradedNarrator]:
    """Return new narrators, the best first."""
    honest = [prose for kind in _UNCHANGING for prose in lines_of("honest", kind)]
    lies = [prose for kind in _UNCHANGING for prose in lines_of("contradictions", kind)]
    broken = [
        " ".join(parts) for parts in zip(*(lines_of("misdeeds", kind) for kind in _CONDUCT), strict=True)
    ]
    return {
        "honest": GradedNarrator(prose=cycle(honest)),
        "forgetful": GradedNarrator(prose=cycle(honest), forgets=True),
        "liar": GradedNarrator(prose=cycle(lies)),
        "tone-breaker": GradedNarrator(prose=cycle(broken), forgets=True),
    }


async def grade(narrator: GradedNarrator, games: int) -> NarratorMetrics:
    """Return the metrics of a narrator in some games, in each of which it must recall a detail."""
    document = json.loads(first_document())
    document["actions"].append(action("wait"))
    metrics = NarratorMetrics()
    for number in range(games):
        name = NAMES[number % len(NAMES)]
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'graded.db'}"
            async with table(url, json.dumps(document).encode(), narrator) as game:
                for turn in range(1, TURNS + 1):
                    words = {MENTION_TURN: _MENTION.format(name), TURNS: _QUESTION}.get(turn, "")
                    events = await game.play(turn, "wait", input=words, pov="alpha")
                    committed = events[-1].event
                    assert isinstance(committed, Committed)
                    is_own = committed.resolution is not Resolution.SERVER_RESOLVED and not words
                    metrics.add(
                        TurnMetrics(
                            committed.resolution,
                            committed.conduct,
                            misconduct=find_misconduct(document, "alpha", committed.narrative)
                            if is_own
                            else (),
                            recalled=name in committed.narrative if turn == TURNS else None,
                        ),
                    )
    return metrics


def count_misdeeds(case: Case) -> dict[str, tuple[int, int, int]]:
    """Return, for each kind of misdeed, how many are withheld, how many are noticed, and how many there are."""
    checker, counts = ClaimChecker(case.facts), {}
    for kind in ("secret", "unruled", "playing_on", "thoughts", "ending", "invented", "tense", "schema"):
        told = lines_of("misdeeds", kind)
        withheld = sum(bool(checker.check(prose)) for prose in told)
        noticed = sum(
            bool(checker.check(prose)) or bool(find_misconduct(case.facts.spec, "alpha", prose))
            for prose in told
        )
        counts[kind] = (withheld, noticed, len(told))
    return counts
