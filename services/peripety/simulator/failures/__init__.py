"""What can go wrong, when it does, and what it does to an answer."""

from peripety.simulator.failures.kinds import KINDS, Kind, Place, Setting
from peripety.simulator.failures.occurrence import occurs

__all__ = ["KINDS", "Kind", "Place", "Setting", "occurs"]
