"""Captured calls: stored, queried and asserted on by tests."""

from peripety.simulator.capture.calls import Answered, Asked, Captured, Failed, Outcome, Unmatched, outcome
from peripety.simulator.capture.log import CaptureLog

__all__ = ["Answered", "Asked", "CaptureLog", "Captured", "Failed", "Outcome", "Unmatched", "outcome"]
