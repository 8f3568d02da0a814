"""What was asked and what came of it: kept, searched, and held against what a test expects."""

from peripety.simulator.capture.calls import Answered, Asked, Captured, Failed, Outcome, Unmatched, outcome
from peripety.simulator.capture.log import CaptureLog

__all__ = ["Answered", "Asked", "CaptureLog", "Captured", "Failed", "Outcome", "Unmatched", "outcome"]
