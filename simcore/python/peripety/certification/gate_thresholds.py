"""Thresholds of the difficulty gate: how often simulated players may win or lose, and how a rate is decided.

The random persona is not here: its limits stand in the specification (`negativity_budget`).
"""

INDIFFERENCE_ZONE = 0.03
"""Distance from a threshold within which the sequential test may decide either way."""

ERROR_RATE = 0.01
"""Error rate of the sequential test outside the indifference zone."""

SOLVER_WINS_AT_LEAST = 0.6
"""Share of games that the author's own solution must win."""

FORESIGHT_WINS_AT_MOST = 0.95
"""Share of games above which a solution, or a player with lookahead, wins too surely; only a warning."""

CURIOUS_WINS_AT_LEAST = 0.15
"""Share of games that a player who tries everything should win; only a warning."""

CURIOUS_WINS_AT_MOST = 0.5
"""Largest share of games that a player who tries everything may win."""

IDLE_WINS_AT_MOST = 0.05
"""Largest share of games that doing nothing may win."""

IDLE_LOSES_AT_LEAST = 0.5
"""Share of games that doing nothing must lose; for documents without solutions."""

SKILLED_LOSES_AT_LEAST = 0.2
"""Share of games that players with lookahead must lose; for documents without solutions."""

SKILLED_LOSES_AT_MOST = 0.45
"""Largest share of games that players with lookahead may lose; for documents without solutions."""
