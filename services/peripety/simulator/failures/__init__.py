"""Faults: their kinds, when they occur, and how they change an answer."""

from peripety.simulator.failures.answers import Said, changed
from peripety.simulator.failures.kinds import KINDS, Kind, Place, Setting
from peripety.simulator.failures.occurrence import occurs
from peripety.simulator.failures.refusals import embedded, failure_of, refusal

__all__ = [
    "KINDS",
    "Kind",
    "Place",
    "Said",
    "Setting",
    "changed",
    "embedded",
    "failure_of",
    "occurs",
    "refusal",
]
