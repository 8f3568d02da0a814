"""The native core of Peripety.

An implementation detail of `peripety.engine`, which selects this backend or the reference in Python. Bytes
in, bytes out: documents, states and results cross as canonical JSON.
"""

from __future__ import annotations

from peripety_simcore._errors import SimcoreError
from peripety_simcore._native import (
    Data,
    Patterns,
    Policy,
    Program,
    Requests,
    Rule,
    State,
    __version__,
    compile,  # noqa: A004 - the name in the engine
    draw,
    evaluate,
    parse,
    run_seed,
    validate_many,
)

__all__ = [
    "Data",
    "Patterns",
    "Policy",
    "Program",
    "Requests",
    "Rule",
    "SimcoreError",
    "State",
    "__version__",
    "compile",
    "draw",
    "evaluate",
    "parse",
    "run_seed",
    "validate_many",
]
