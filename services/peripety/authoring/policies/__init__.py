"""Rules from a written policy in English, without a model, and scenarios that reach them.

What is not understood to its end allows nothing, and is named.
"""

from peripety.authoring.policies.judging import judgement
from peripety.authoring.policies.rules import RulesRead, rules_from
from peripety.authoring.policies.scenarios import scenarios_from

__all__ = ["RulesRead", "judgement", "rules_from", "scenarios_from"]
