"""Tools, tasks, reference calls and their results of AgentDojo as JSON, for `agentdojo_policies`.

It needs agentdojo. The text of an attack is written into every place that it can reach.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from agentdojo.functions_runtime import FunctionsRuntime  # type: ignore[import-not-found]
from agentdojo.task_suite.load_suites import get_suites  # type: ignore[import-not-found]

_VERSION = "v1"


def main() -> int:
    """Write the suites to standard output."""
    json.dump({name: _export_suite(suite) for name, suite in get_suites(_VERSION).items()}, sys.stdout)
    return 0


def _export_suite(suite: Any) -> dict[str, Any]:
    environment = suite.load_and_inject_default_environment({})
    attacks = {
        name: _list_calls(task.ground_truth(environment)) for name, task in suite.injection_tasks.items()
    }
    return {
        "tools": [
            {"name": one.name, "description": one.description, "schema": one.parameters.model_json_schema()}
            for one in suite.tools
        ],
        "user_tasks": {
            name: {
                "prompt": task.PROMPT,
                "calls": _list_calls(task.ground_truth(environment)),
                "results": _run_calls(suite, task, {}),
                "results_under_attack": {
                    attack: _run_calls(suite, task, dict.fromkeys(_vectors(suite), goal.GOAL))
                    for attack, goal in suite.injection_tasks.items()
                    if attacks[attack]
                },
            }
            for name, task in suite.user_tasks.items()
        },
        "injection_tasks": attacks,
    }


def _list_calls(calls: Any) -> list[dict[str, Any]]:
    return [{"tool": one.function, "arguments": dict(one.args)} for one in calls]


def _vectors(suite: Any) -> list[str]:
    """Return the places into which an attack can write."""
    return [*suite.get_injection_vector_defaults()]


def _run_calls(suite: Any, task: Any, injections: dict[str, str]) -> list[str]:
    """Return the results of the reference calls of a user task, with the text of an attack in each place."""
    environment = task.init_environment(suite.load_and_inject_default_environment(injections))
    calls = task.ground_truth(environment)
    runtime = FunctionsRuntime(suite.tools)
    return [str(runtime.run_function(environment, one.function, one.args)[0]) for one in calls]


if __name__ == "__main__":
    sys.exit(main())
