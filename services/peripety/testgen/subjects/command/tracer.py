"""Line tracer for a Python program, started as a program itself.

Usage: `python tracer.py OUTPUT PROGRAM [ARGUMENT...]`. The executed lines are written to OUTPUT. The program
runs with its own `sys.argv` and `__main__`, and its exit code is that of this process.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import ModuleType
from typing import Any


def main() -> None:
    """Run the program."""
    output, program = sys.argv[1:3]
    sys.argv[:] = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))  # noqa: PTH100, PTH120 - pathlib loads much more
    lines: set[int] = set()

    def follow(frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
        return follow

    def enter(frame: Any, _event: str, _: Any) -> Any:
        return follow if frame.f_code.co_filename == program else None

    def tell() -> None:
        sys.settrace(None)
        with open(output, "w") as file:  # noqa: PTH123 - likewise
            file.write(" ".join(map(str, sorted(lines))))

    atexit.register(tell)
    with open(program, "rb") as file:  # noqa: PTH123 - likewise
        code = compile(file.read(), program, "exec")
    module = ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    sys.settrace(enter)
    exec(code, module.__dict__)  # noqa: S102 - the purpose of this program


if __name__ == "__main__":
    main()
