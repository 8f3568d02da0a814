"""A compiled scenario: a test is play, and what has to hold after each turn."""

from peripety.testgen.subjects.scenario.subject import ScenarioSubject

__all__ = ["ScenarioSubject"]
