"""Offline policy author: rules and scenarios from a written policy in English, without a model.

A sentence that is not fully understood never allows anything, and is reported.
"""

from peripety.authoring.policies.judging import judgement
from peripety.authoring.policies.rules import RulesRead, rules_from
from peripety.authoring.policies.scenarios import scenarios_from

__all__ = ["RulesRead", "judgement", "rules_from", "scenarios_from"]
