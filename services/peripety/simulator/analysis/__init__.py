"""Static analysis of scripts: flaws of their rules, and near misses of a prompt."""

from peripety.simulator.analysis.check import Code, Flaw, check
from peripety.simulator.analysis.near_misses import NearMiss, NearMisses

__all__ = ["Code", "Flaw", "NearMiss", "NearMisses", "check"]
