"""Tools and reference calls of AgentDojo as JSON, for `agentdojo_policies`. It needs agentdojo."""

from __future__ import annotations

import json
import sys
from typing import Any

from agentdojo.task_suite.load_suites import get_suites  # type: ignore[import-not-found]

_VERSION = "v1"


def main() -> int:
    """Write the suites to standard output."""
    json.dump({name: _export_suite(suite) for name, suite in get_suites(_VERSION).items()}, sys.stdout)
    return 0


def _export_suite(suite: Any) -> dict[str, Any]:
    environment = suite.load_and_inject_default_environment({})

    def calls(task: Any) -> list[dict[str, Any]]:
        return [{"tool": one.function, "arguments": dict(one.args)} for one in task.ground_truth(environment)]

    return {
        "tools": [
            {"name": one.name, "description": one.description, "schema": one.parameters.model_json_schema()}
            for one in suite.tools
        ],
        "user_tasks": {name: calls(task) for name, task in suite.user_tasks.items()},
        "injection_tasks": {name: calls(task) for name, task in suite.injection_tasks.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
