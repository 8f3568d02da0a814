"""Dry-runs by generated source: what the interpreter does, as straight Python over local variables.

A scenario's rules are lowered to one function that plays a whole run; `peripety.sim._pure` stays what they
mean. The function never reports anything: where a rule fails or might fail, where a limit might be reached,
or where a value is not what it was known to be, it *leaves* the run, which the interpreter then plays again
from its start. A run is a pure function of its seed, so that changes nothing but the time it takes. What
cannot be lowered at all is played by the interpreter from the first; so are personas that look ahead, and
dry-runs of which detail is asked for.

Of a scenario with one action, one event and one loss this is the source::

    def play(seed, horizon, rows):
        s0 = 20.0
        s1 = 3.0
        outcome, condition = "survived", None
        for turn, draws in zip(range(1, horizon + 1), rows):
            legal = []
            if s0 > 2.0:
                legal.append(0)
            if legal:
                action = legal[(draws[1] >> 32) * len(legal) >> 32]
                s0 -= 1.5
                s1 = s1 * 0.95 + 0.0
            chance = (draws[0] >> 11) * 1.1102230246251565e-16
            reached = 0.0
            if (s1 < 5.0) and chance < (reached := reached + 0.25):
                s0 += 2.0
            s1 -= 0.25
            if s0 <= 0.0:
                outcome, condition = "lost", 0
                break
        return outcome, condition, turn, (s0, s1,)

Modules: `slots` (what changes, and the variables for it), `expressions` and `texts` (JSONLogic), `rules`
(derived values and effects), `actions`, `events` and `template` (the turn around them), `draft` and `limits`
(what can grow and what it may cost), `draws` (randomness in blocks), `player` (compiles and plays).
"""

from __future__ import annotations

from peripety.sim._pure.compiled.player import Player, Players

__all__ = ["Player", "Players"]
