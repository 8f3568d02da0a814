"""Implementations of JSONLogic to be measured beside ours, as they are installed for benchmarks.

Two of them call their package `json_logic`, so that each lives in a folder of its own,
`<environment>/peers/<name>`.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.engine.backends import backend_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    Evaluate = Callable[[], Any]


def _core(name: str, logic: Any, data: Any) -> Evaluate:
    core = backend_named(name)
    rule, parsed = core.compile_rule(logic, _refusal), core.parse_data(data, _refusal)
    return lambda: rule.evaluate(parsed)


def _refusal(code: str, message: str, _path: str) -> Exception:
    return ValueError(f"{code}: {message}")


def _datalogic(logic: Any, data: Any) -> Evaluate:
    import datalogic_py  # noqa: PLC0415 - it may be absent

    rule = datalogic_py.Engine().compile(json.dumps(logic))
    parsed = datalogic_py.DataHandle(json.dumps(data))
    return lambda: rule.evaluate_data(parsed)


def _interpreter(distribution: str, logic: Any, data: Any) -> Evaluate:
    apply = _module(distribution).jsonLogic
    return lambda: apply(logic, data)


def _module(distribution: str) -> ModuleType:
    """The `json_logic` of a distribution, which stays unknown to any other import."""
    folder = str(Path(sys.prefix) / "peers" / distribution)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("json_logic")
    finally:
        sys.path.remove(folder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "json_logic"]:
            del sys.modules[name]


# Functions by name that compile an expression and parse data where supported; ModuleNotFoundError if absent.
IMPLEMENTATIONS: dict[str, Callable[[Any, Any], Evaluate]] = {
    "native": lambda logic, data: _core("native", logic, data),
    "python": lambda logic, data: _core("python", logic, data),
    "datalogic-py": _datalogic,
    "json-logic-qubit": lambda logic, data: _interpreter("json-logic-qubit", logic, data),
    "panzi-json-logic": lambda logic, data: _interpreter("panzi-json-logic", logic, data),
}
