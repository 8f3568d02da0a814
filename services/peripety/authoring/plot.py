"""The design behind every authored scenario, in roles that any words can play.

    stock    is spent on everything and shrinks by itself; at nothing the run is lost
    ward     is to be looked after; in good shape it lets work go further; at nothing the run is lost
    threat   grows by chance and by neglect; once large it hurts the ward; at its limit the run is lost
    goal     is worked for; enough of it wins, too little of it at the deadline loses
    wear     is hidden: what shortcuts leave behind on the ward, until it strikes
    plan     only the player knows: a preparation that has not paid off yet
    reserve  only somebody named in the text knows: what they hold back of the stock

The odds hang on the tempo and on which of deadline and reserve there are: units scale every number of a
quantity alike, and words do not count. So there are few cases, and the tests play every one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.authoring.rules import Condition, Quantity, all_of, tree, variable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PLAYER", "TEMPOS", "Ending", "Plot", "Tempo", "losses", "specified", "stakes", "state", "wins"]

PLAYER = "player"
_THREAT_AT_START = 2
_HELD_BACK = 3


@dataclass(frozen=True, slots=True)
class Tempo:
    """The numbers of a design: turns, and steps of each quantity.

    Attributes:
        horizon: turns of a run.
        stock: how much of it there is at the start.
        ward: likewise.
        limit: how much threat loses.
        target: how much of the goal wins.
        deadline: the turn from which too little of the goal loses.
        due: how much of it is enough then.
    """

    horizon: int
    stock: int
    ward: int
    limit: int
    target: int
    deadline: int
    due: int


TEMPOS = (
    Tempo(horizon=18, stock=17, ward=11, limit=11, target=10, deadline=8, due=4),
    Tempo(horizon=24, stock=20, ward=14, limit=13, target=12, deadline=12, due=6),
    Tempo(horizon=30, stock=25, ward=17, limit=15, target=16, deadline=16, due=8),
)


@dataclass(frozen=True, slots=True)
class Plot:
    """The quantities of one scenario, its numbers, and the connecting text of the user's language.

    Attributes:
        reserve: None where the text names nobody.
        confidant: the name of whoever holds the reserve.
        surprise: the term under which wear strikes.
        comfort: the term under which relief comes.
        has_deadline: whether too little of the goal loses halfway.
        tempo: the numbers.
        ids: an identifier for each term and person.
        phrases: connecting text by use.
    """

    stock: Quantity
    ward: Quantity
    threat: Quantity
    goal: Quantity
    wear: Quantity
    plan: Quantity
    reserve: Quantity | None
    confidant: str
    surprise: str
    comfort: str
    has_deadline: bool
    tempo: Tempo
    ids: Mapping[str, str]
    phrases: Mapping[str, str]

    def say(self, use: str, first: str, second: str = "") -> str:
        """Connecting text around one or two terms."""
        return self.phrases[use].format(a=first, b=second)

    def id(self, use: str, term: str) -> str:
        """The identifier of a rule about a term."""
        return f"{use}_{self.ids[term]}"


@dataclass(frozen=True, slots=True)
class Ending:
    """A way a run ends: the connecting text it uses, the term it is about, and when it holds."""

    use: str
    term: str
    when: Condition


def state(plot: Plot) -> dict[str, Any]:
    """The state at the start."""
    at_start = {
        plot.stock: plot.tempo.stock,
        plot.ward: plot.tempo.ward,
        plot.threat: _THREAT_AT_START,
        plot.goal: 0,
        plot.wear: 0,
        plot.plan: 0,
    }
    if plot.reserve:
        at_start[plot.reserve] = _HELD_BACK
    return tree(at_start)


def losses(plot: Plot) -> list[Ending]:
    """What loses a run."""
    endings = [
        Ending("gone", plot.stock.term, plot.stock.at_most(0)),
        Ending("fallen", plot.ward.term, plot.ward.at_most(0)),
        Ending("flood", plot.threat.term, plot.threat.at_least(plot.tempo.limit)),
    ]
    if plot.has_deadline:
        turn = plot.tempo.deadline
        past = Condition({">=": [variable("turn"), turn]}, f"\u29d7{turn}")
        endings.append(Ending("late", plot.goal.term, all_of(plot.goal.below(plot.tempo.due), past)))
    return endings


def wins(plot: Plot) -> list[Ending]:
    """What wins a run."""
    return [Ending("reached", plot.goal.term, plot.goal.at_least(plot.tempo.target))]


def specified(plot: Plot, endings: list[Ending]) -> list[dict[str, Any]]:
    """Endings as the specification has them."""
    return [
        {"id": plot.id(end.use, end.term), "when": end.when.logic, "message": plot.say(end.use, end.term)}
        for end in endings
    ]


def stakes(plot: Plot) -> str:
    """What wins and what loses, in signs that need no language."""
    won = [f"\u2713 {end.when.shown}" for end in wins(plot)]
    lost = [f"\u2717 {end.when.shown}" for end in losses(plot)]
    return "; ".join([*won, *lost])
