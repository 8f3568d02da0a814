"""A compiled scenario as subject: tests play turns, with expectations after each turn."""

from peripety.testgen.subjects.scenario.subject import ScenarioSubject

__all__ = ["ScenarioSubject"]
