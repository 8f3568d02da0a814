"""Scripted narrators of known quality, and the grades that the narrator's metrics give them."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.session.events import Committed
from peripety.session.narration.claims.checker import ClaimChecker
from peripety.session.narration.claims.conduct import (
    INVENTED,
    MACHINERY,
    PLAYING_ON,
    TENSE,
    THOUGHTS,
    find_misconduct,
)
from peripety.session.narrator_metrics import NarratorMetrics, TurnMetrics
from peripety.session.types import Resolution
from support.engine.specs import action
from support.gateway.fake_gateway import FakeGateway
from support.session.claims import first_document, lines_of
from support.session.recall import narrate_from_prompt
from support.session.sessions import outcome, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.gateway.types.request import GenerateRequest
    from support.session.claims import Case

TURNS = 8
MENTION_TURN = 2
NAMES = ("Abri", "Belno", "Cuvo", "Dasim", "Elora")
_MENTION = "I look at the first wall. From now on I call the first by the name of {}."
_QUESTION = "What did I call the first?"
_MISDEEDS = {
    "secret": "",
    "unruled": "",
    "playing_on": PLAYING_ON,
    "thoughts": THOUGHTS,
    "ending": "",
    "invented": INVENTED,
    "tense": TENSE,
    "schema": MACHINERY,
}
"""Kinds of misdeeds, with the misconduct that they are."""
_CONDUCT = ("tense", "schema", "thoughts", "playing_on")
_UNCHANGING = ("life", "presence", "possession")


class GradedNarrator(FakeGateway):
    """A narrator that writes given prose and may forget.

    Args:
        prose: the narrations, in rotation.
        forgets: True if it never answers a question of the player.
    """

    def __init__(self, prose: Sequence[str], *, forgets: bool = False) -> None:
        super().__init__(self._narrate)
        self._prose = cycle(prose)
        self._forgets = forgets

    def _narrate(self, request: GenerateRequest) -> str:
        told = next(self._prose)
        last = request.messages[-1].text
        if self._forgets or '"input"' not in last or not json.loads(last)["facts"]["input"].endswith("?"):
            return outcome(told)
        known = json.loads(narrate_from_prompt(request))["narrative"]
        return outcome(f"{known} {told}")


def narrators() -> dict[str, GradedNarrator]:
    """Return new narrators, the best first."""
    honest = [prose for kind in _UNCHANGING for prose in lines_of("honest", kind)]
    lies = [prose for kind in _UNCHANGING for prose in lines_of("contradictions", kind)]
    broken = [
        " ".join(parts) for parts in zip(*(lines_of("misdeeds", kind) for kind in _CONDUCT), strict=True)
    ]
    return {
        "honest": GradedNarrator(honest),
        "forgetful": GradedNarrator(honest, forgets=True),
        "liar": GradedNarrator(lies),
        "tone-breaker": GradedNarrator(broken, forgets=True),
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
                    is_own = committed.resolution is not Resolution.SERVER_RESOLVED
                    found = find_misconduct(document, "alpha", committed.narrative) if is_own else ()
                    # The player's own words may be narrated as deeds.
                    allowed = {PLAYING_ON} if words else set()
                    metrics.add(
                        TurnMetrics(
                            committed.resolution,
                            committed.conduct,
                            misconduct=tuple(kind for kind in found if kind not in allowed),
                            recalled=name in committed.narrative if turn == TURNS else None,
                        ),
                    )
    return metrics


def count_misdeeds(case: Case, name: str = "misdeeds") -> dict[str, tuple[int, int, int]]:
    """Return how many misdeeds of each kind are withheld, noticed, and tried.

    Args:
        case: the situation.
        name: the file of misdeeds.
    """
    checker, counts = ClaimChecker(case.facts), {}
    for kind, misconduct in _MISDEEDS.items():
        told = lines_of(name, kind)
        withheld = sum(bool(checker.check(prose)) for prose in told)
        noticed = sum(
            bool(checker.check(prose)) or misconduct in find_misconduct(case.facts.spec, "alpha", prose)
            for prose in told
        )
        counts[kind] = (withheld, noticed, len(told))
    return counts


def count_false_alarms(cases: Iterable[Case]) -> tuple[dict[str, int], int]:
    """Return in how many honest sentences each kind of misdeed is noticed, and the number of sentences."""
    found: Counter[str] = Counter()
    total = 0
    for case in cases:
        total += 1
        noticed = find_misconduct(case.facts.spec, None, case.prose)
        found.update(kind for kind, name in _MISDEEDS.items() if name in noticed)
    return dict(found), total
