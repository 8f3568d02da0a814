"""Survey of Python functions, which runs inside the sandbox, in the interpreter of the functions.

Usage: `python function_survey.py values DESCRIPTOR`. The file descriptor holds a JSON object, the job. The
results replace it, one JSON value per line.

1. Calls of each function as source text. Hypothesis draws their arguments from the type hints, the defaults
   and the constants of the source. They are the same in each run. Of a class, these are calls of its
   constructor, and of its public methods on a new object.
2. For each law, whether it holds for most arguments, and the simplest arguments for which it does not hold.
   Hypothesis shrinks them.

Each step is a forked process, because a function may not end.
"""

from __future__ import annotations

import enum
import functools
import importlib
import importlib.util
import inspect
import json
import os
import resource
import sys
import typing
from contextlib import suppress
from typing import Any

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
if sys.path[:1] == [_DIRECTORY]:
    del sys.path[0]  # the function must not find this one


def _load_probe() -> Any:
    """Load the neighbour of this program under a name that no program uses."""
    spec = importlib.util.spec_from_file_location("_peripety_probe", os.path.join(_DIRECTORY, "probe.py"))
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - the file exists
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


probe = _load_probe()

_MAX_STEP_SECONDS = 4
"""Limit of the processor time of a step."""

_MAX_SECONDS = 16.0
"""Limit of the processor time of all steps; the steps after it are left out."""

_MAX_WAITING_SECONDS = 40.0
_MAX_EXAMPLES = 120
"""Number of calls to draw of a single function; several functions share four times as many."""

_MIN_EXAMPLES = 24
_MAX_METHODS = 12
_MAX_ATTRIBUTES = 100
_MAX_TRIED = 100
_MAX_SOURCE = 300
_MAX_HELD = 3
_USUAL_SHARE = 0.9
"""A law that follows from names is used only if it holds for this share of the arguments."""

_IMPORTS = {
    "datetime": "import datetime",
    "Decimal": "from decimal import Decimal",
    "Fraction": "from fractions import Fraction",
    "PosixPath": "from pathlib import PosixPath",
    "UUID": "from uuid import UUID",
}
_LETTERS = "ab cdxyzABC019_-.,:;/@+=()[]{}'\"\\\n\té\u00df\u4e2d"


def main() -> None:
    """Run the survey."""
    descriptor = int(sys.argv[2])
    with os.fdopen(descriptor, "r+b", closefd=False) as report:
        job = json.loads(report.read())
        report.seek(0)
        report.truncate()
    if not job["is_isolated"]:
        sys.path.insert(0, os.getcwd())
    names = dict.fromkeys([name for name, _ in job["functions"]] + [law["module"] for law in job["laws"]])
    modules = {name: importlib.import_module(name) for name in names}
    sys.path.extend(job["packages"])
    importlib.import_module("hypothesis.strategies")  # once, before the processes of the steps
    share = (
        _MAX_EXAMPLES if len(job["functions"]) == 1 else 4 * _MAX_EXAMPLES // max(len(job["functions"]), 1)
    )
    count = min(max(share, _MIN_EXAMPLES), _MAX_EXAMPLES)

    def draw(name: str, function: str) -> None:
        calls = _draw_calls(modules[name], function, job["constants"].get(name, ()), count)
        probe.report_result(descriptor, {"module": name, "function": function, "calls": calls})

    steps = [functools.partial(draw, name, function) for name, function in job["functions"]]
    for number, law in enumerate(job["laws"]):
        constants = job["constants"].get(law["module"], ())
        steps.append(
            functools.partial(_report_law, descriptor, modules[law["module"]], constants, number, law)
        )
    for step in steps:
        if sum(os.times()[:4]) > _MAX_SECONDS:
            return
        _run_step(step)


def _run_step(step: Any) -> None:
    child = os.fork()
    if child:
        probe.wait_for(child, _MAX_WAITING_SECONDS)
        return
    os.setsid()
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (_MAX_STEP_SECONDS, _MAX_STEP_SECONDS + 1))
    with suppress(BaseException):
        step()
    os._exit(0)


# arguments


def _draw_calls(module: Any, name: str, constants: Any, count: int) -> list[str]:
    """Return calls as source text, the shortest first."""
    drawn: dict[str, None] = {}
    forms = _forms_of(module, name, constants)

    def collect(form: str, groups: Any) -> None:
        sources = [_arguments_source(one, module) for one in groups]
        if None not in sources:
            drawn.setdefault(_with_imports(form.format(*sources), module))

    for form, strategy in forms:
        _for_each(strategy, functools.partial(collect, form), max(count // len(forms), _MIN_EXAMPLES))
    return sorted(drawn, key=lambda one: (len(one), one))


def _forms_of(module: Any, name: str, constants: Any) -> list[tuple[str, Any]]:
    """Return the forms of calls, each with a strategy of the arguments in its places."""
    st = importlib.import_module("hypothesis.strategies")
    _register_types(st, constants)
    called = getattr(module, name)
    own = _arguments_strategy(st, called)
    forms = [(f"{name}({{}})", st.tuples(own))]
    for method, value in [*vars(called).items()][:_MAX_ATTRIBUTES] if isinstance(called, type) else ():
        if method.startswith("_") or len(forms) > _MAX_METHODS:
            continue
        if isinstance(value, property):
            forms.append((f"{name}({{}}).{method}", st.tuples(own)))
        elif inspect.isfunction(value):
            strategy = st.tuples(own, _arguments_strategy(st, value, skipped=1))
            forms.append((f"{name}({{}}).{method}({{}})", strategy))
    return forms


def _for_each(strategy: Any, act: Any, count: int) -> None:
    """Call a function with values of a strategy, which are the same in each run."""
    hypothesis = importlib.import_module("hypothesis")

    def each(value: Any) -> None:
        act(value)

    settings = hypothesis.settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[*hypothesis.HealthCheck],
    )
    with suppress(Exception):
        settings(hypothesis.given(strategy)(each))()


def _arguments_strategy(st: Any, function: Any, skipped: int = 0) -> Any:
    """Return a strategy of pairs: positional arguments without the first ones, and keyword arguments."""
    hints: dict[str, Any] = {}
    with suppress(Exception):
        hints = typing.get_type_hints(function)
    if isinstance(function, type):
        with suppress(Exception):
            hints |= typing.get_type_hints(function.__init__)  # type: ignore[misc] # of this class
    required: list[Any] = []
    optional: list[Any] = []
    keywords: dict[str, Any] = {}
    for parameter in [*inspect.signature(function).parameters.values()][skipped:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        strategy = _parameter_strategy(st, parameter, hints.get(parameter.name))
        if parameter.kind is parameter.KEYWORD_ONLY:
            if parameter.default is parameter.empty:
                keywords[parameter.name] = strategy
        elif parameter.default is parameter.empty:
            required.append(strategy)
        else:
            optional.append(strategy)
    counts = range(len(optional) + 1)
    positional = st.one_of(*(st.tuples(*required, *optional[:count]) for count in counts))
    return st.tuples(positional, st.fixed_dictionaries(keywords))


def _register_types(st: Any, constants: Any) -> None:
    """Let the usual types have small values, and the constants of the source."""
    texts = [one for one in constants if isinstance(one, str)]
    numbers = [one for one in constants if isinstance(one, (int, float))]
    integers = [one for one in numbers if isinstance(one, int)]
    text = st.text(_LETTERS, max_size=12)
    integer = st.integers(-20, 20) | st.integers(-(10**6), 10**6)
    real = st.floats(-1e6, 1e6, allow_nan=False).map(lambda one: round(one, 3)) | st.sampled_from(
        [0.0, 0.5, 1.5]
    )
    st.register_type_strategy(str, text | st.sampled_from(texts) if texts else text)
    st.register_type_strategy(int, integer | st.sampled_from(integers) if integers else integer)
    st.register_type_strategy(float, real | st.sampled_from([*map(float, numbers)]) if numbers else real)


def _parameter_strategy(st: Any, parameter: Any, hint: Any) -> Any:
    usual = st.one_of(
        st.from_type(int),
        st.from_type(str),
        st.lists(st.from_type(int), max_size=4),
        st.lists(st.from_type(str), max_size=4),
        st.from_type(float),
        st.none(),
    )
    if hint is None and parameter.default not in (parameter.empty, None):
        hint = type(parameter.default)
    if hint is None or hint is typing.Any:
        return usual
    strategy = st.from_type(hint)
    with suppress(Exception):
        strategy.validate()
        return strategy
    return usual


def _arguments_source(arguments: Any, module: Any) -> str | None:
    """Return the arguments of a call as source text; None if a value has no source."""
    positional, keywords = arguments
    parts = [_to_source(one, module) for one in positional]
    parts += [_named(name, _to_source(one, module)) for name, one in keywords.items()]
    if None in parts:
        return None
    source = ", ".join(parts)  # type: ignore[arg-type]
    return source if len(source) <= _MAX_SOURCE else None


def _named(name: str, source: str | None) -> str | None:
    return None if source is None else f"{name}={source}"


def _to_source(value: Any, module: Any) -> str | None:
    """Return an expression that has the value in the module; None for none."""
    is_member = isinstance(value, enum.Enum)
    source = f"{type(value).__qualname__}.{value.name}" if is_member else repr(value)
    namespace = _namespace_of(module, source)
    try:
        found = eval(source, namespace)  # noqa: S307 - the source of a value
        is_same = type(found) is type(value) and found == value
    except Exception:  # noqa: BLE001 - a representation need not be source
        return None
    return source if is_same else None


def _namespace_of(module: Any, source: str) -> dict[str, Any]:
    namespace = dict(vars(module))
    for name, statement in _IMPORTS.items():
        if name in source and name not in namespace:
            exec(statement, namespace)  # noqa: S102 - one of the statements above
    return namespace


def _with_imports(code: str, module: Any) -> str:
    """Return statements with the imports that their values need."""
    needed = [line for name, line in _IMPORTS.items() if f"{name}(" in code or f"{name}." in code]
    own = vars(module)
    return "\n".join([*(line for line in needed if line.split()[-1] not in own), code])


# laws


def _report_law(descriptor: int, module: Any, constants: Any, number: int, law: Any) -> None:
    """Report the arguments of a law: some for which it holds, and the simplest one for which it does not."""
    hypothesis = importlib.import_module("hypothesis")
    st = importlib.import_module("hypothesis.strategies")
    _register_types(st, constants)
    one = _arguments_strategy(st, getattr(module, law["function"])).map(lambda given: given[0][0])
    strategy = st.tuples(*[one] * law["arity"])
    results: dict[str, bool] = {}

    def check(values: Any) -> bool | None:
        sources = [_to_source(value, module) for value in values]
        if None in sources:
            return None
        code = law["code"].format(*sources)
        try:
            result = eval(code, _namespace_of(module, code))  # noqa: S307 - the call of a law
        except Exception:  # noqa: BLE001 - a law says nothing about values that a function rejects
            return None
        return bool(result)

    def collect(values: Any) -> None:
        result = check(values)
        if result is not None:
            sources = [_to_source(value, module) for value in values]
            results[law["code"].format(*sources)] = result

    _for_each(strategy, collect, _MAX_TRIED)
    held = sorted((code for code, result in results.items() if result), key=lambda code: (len(code), code))
    is_usual = len(held) >= max(_MAX_HELD, _USUAL_SHARE * len(results))
    if not (is_usual or (law["is_sure"] and results)):
        return
    found = []
    if len(held) < len(results):
        settings = hypothesis.settings(
            max_examples=_MAX_TRIED,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=[*hypothesis.HealthCheck],
        )
        with suppress(Exception):
            values = hypothesis.find(strategy, lambda values: check(values) is False, settings=settings)
            found = [law["code"].format(*(_to_source(value, module) for value in values))]
    held = held[:: max(1, len(held) // _MAX_HELD)][:_MAX_HELD]
    result = {
        "law": number,
        "held": [_with_imports(code, module) for code in held],
        "missed": [_with_imports(code, module) for code in found],
    }
    probe.report_result(descriptor, result)


if __name__ == "__main__":
    main()
