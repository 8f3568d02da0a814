"""Code generator for dry-runs: compiles a scenario to one Python function over local variables.

The function plays a whole run and reports nothing else. It abandons the run where a rule fails or might fail,
where a limit might be reached, or where a value changes its kind. The interpreter then plays the same run
from its start. A run is a pure function of its seed, so this changes only the time. The interpreter
remains the definition: it also plays scenarios that cannot be compiled, personas that look ahead, and
dry-runs with detail.

For a scenario with one action, one event and one loss condition, this is the source:

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

Modules: `slots` (changing values and their variables), `expressions` and `texts` (JSONLogic), `rules`
(derived values and effects), `actions`, `events` and `template` (the phases of a turn), `draft` and `limits`
(growth and cost), `draws` (blocks of random numbers), `player` (compilation and execution).
"""

from __future__ import annotations

from peripety.sim._pure.compiled.player import Player, Players

__all__ = ["Player", "Players"]
