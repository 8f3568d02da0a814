"""The native core of Peripety.

An implementation detail of `peripety.engine`, which chooses between this and the reference in Python. Bytes in,
bytes out: documents, states and results cross as canonical JSON.
"""

from __future__ import annotations

from peripety_simcore._errors import SimcoreError
from peripety_simcore._native import Data
from peripety_simcore._native import Patterns
from peripety_simcore._native import Policy
from peripety_simcore._native import Program
from peripety_simcore._native import Requests
from peripety_simcore._native import Rule
from peripety_simcore._native import State
from peripety_simcore._native import __version__
from peripety_simcore._native import compile
from peripety_simcore._native import draw
from peripety_simcore._native import evaluate
from peripety_simcore._native import parse
from peripety_simcore._native import run_seed
from peripety_simcore._native import screen

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
    "screen",
]
