"""The JSONLogic expressions of the benchmarks: operators that every implementation has, over usual data."""

from __future__ import annotations

from typing import Any

DATA: dict[str, Any] = {
    "a": {"b": {"c": 12.5}},
    "low": 3,
    "high": 40,
    "mode": "open",
    "words": ["x", "y", "z"],
    "rows": [{"n": n, "price": 2 + n % 7, "kind": "x" if n % 3 else "y"} for n in range(40)],
}

RULES: dict[str, Any] = {
    "two clauses": {"and": [{">": [{"var": "low"}, 2]}, {"<": [{"var": "a.b.c"}, 60]}]},
    "arithmetic": {
        "+": [{"*": [{"var": "low"}, 3]}, {"-": [{"var": "high"}, {"%": [{"var": "a.b.c"}, 5]}]}, 1],
    },
    "choice": {
        "if": [
            {"==": [{"var": "mode"}, "shut"]},
            "none",
            {"in": ["q", {"var": "words"}]},
            "some",
            {">=": [{"var": "high"}, 40]},
            {"cat": [{"var": "mode"}, "-", {"substr": [{"var": "mode"}, 0, 2]}]},
            "all",
        ],
    },
    "forty rows": {
        "reduce": [
            {"map": [{"filter": [{"var": "rows"}, {"==": [{"var": "kind"}, "x"]}]}, {"var": "price"}]},
            {"+": [{"var": "accumulator"}, {"var": "current"}]},
            0,
        ],
    },
}
