"""Many runs without a model: what the rules do to a player who follows a persona."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.detail import Detail
from peripety.sim._pure.effects import Record
from peripety.sim._pure.endings import Ending
from peripety.sim._pure.personas import persona_of
from peripety.sim._pure.rng import RNG_VERSION, run_seed
from peripety.sim._pure.state import Rules, State
from peripety.sim._pure.turn import PolicyDraws, act, legal_choices, step

if TYPE_CHECKING:
    from peripety.sim._pure.compiled import Players
    from peripety.sim._pure.personas import Persona

__all__ = ["dry_run"]


def dry_run(rules: Rules, options: dict[str, Any], players: Players | None = None) -> dict[str, Any]:
    """Play runs `first_run` … `first_run + runs - 1`.

    Args:
        rules: the scenario.
        options: `{runs, first_run, seed (text), persona, horizon?, digest?, detail?, watch?}`.
        players: play as many of the runs as they can, faster, where no detail is asked for; the report is
            the same.

    Returns:
        A `DryRunReport`; turns are counted over all runs. A digest and the detail are given when they are
        asked for.
    """
    seed, name = int(options["seed"]), options["persona"]
    horizon = int(options.get("horizon", rules.horizon))
    persona = persona_of(name, rules, horizon)
    tally = _Tally(rules, options.get("watch", []))
    digest = hashlib.sha256() if options.get("digest") else None
    is_detailed = bool(options.get("detail"))
    first = int(options["first_run"])
    for run in range(first, first + int(options["runs"])):
        own_seed = run_seed(seed, run)
        player = players.under(name) if players and not is_detailed else None
        ending = player.play(own_seed, horizon) if player else None
        if ending is None:
            ending = _play(State.initial(rules, own_seed), persona, horizon, tally)
        tally.count(ending)
        if digest is not None:
            digest.update(ending.digest_line())
    return {
        **tally.counts,
        **({} if digest is None else {"digest": digest.hexdigest()}),
        **({"detail": tally.detail.report()} if is_detailed else {}),
        "losses": tally.losses,
        "wins": tally.wins,
        "errors": list(tally.errors.values()),
        "runs": options["runs"],
        "first_run": options["first_run"],
        "seed": options["seed"],
        "persona": name,
        "horizon": horizon,
        "rng_version": RNG_VERSION,
    }


class _Tally:
    """What came of the runs so far."""

    def __init__(self, rules: Rules, watch: list[tuple[str, float]]) -> None:
        self.counts = {"turns": 0, "lost": 0, "won": 0, "survived": 0, "errored": 0}
        self.losses = {condition["id"]: 0 for condition in rules.losses}
        self.wins = {condition["id"]: 0 for condition in rules.wins}
        self.errors: dict[tuple[str, str], dict[str, Any]] = {}
        self.detail = Detail(rules, watch)

    def count(self, ending: Ending) -> None:
        self.counts["turns"] += ending.turns
        self.counts[ending.outcome] += 1
        if ending.condition is not None:
            (self.losses if ending.outcome == "lost" else self.wins)[ending.condition] += 1

    def note(self, errors: list[dict[str, str]]) -> None:
        for error in errors:
            entry = self.errors.setdefault((error["code"], error["rule"]), {**error, "count": 0})
            entry["count"] += 1


def _play(state: State, persona: Persona | None, horizon: int, tally: _Tally) -> Ending:
    """Play one run to its end."""
    outcome = "survived"
    while state.turn < horizon and outcome == "survived":
        try:
            if persona is not None:
                _take_action(state, persona, tally)
            finished = step(state)
        except CoreError as error:
            tally.note([{"code": error.code, "rule": error.path, "message": error.message}])
            outcome = "errored"
        else:
            tally.note(finished["errors"])
            tally.detail.drew(finished["event"])
            outcome = "survived" if state.status["kind"] == "ongoing" else str(state.status["kind"])
    tally.detail.ended(outcome, state)
    return Ending(outcome, state.status.get("condition"), state.turn, state.tree)


def _take_action(state: State, persona: Persona, tally: _Tally) -> None:
    draws, record = PolicyDraws(state), Record()
    choices = legal_choices(state, draws, record)
    tally.note(record.errors)
    tally.detail.chose_among(choices)
    choice = persona(state, choices, draws)
    if choice is not None:
        action, params = choice
        result = act(state, action["id"], params)
        tally.note(result["errors"])
        if result["accepted"]:
            tally.detail.took(action["id"])
