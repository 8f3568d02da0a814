"""Starts Debian's Ren'Py 8.0, which does not run on Debian's Python 3.11 without a correction.

Python 3.11 refuses syntax trees whose nodes end before they begin, and this Ren'Py makes such nodes.
"""

from __future__ import annotations

import ast
import builtins
import runpy
import sys
from typing import Any

_compile = builtins.compile


def _compile_corrected(source: Any, *arguments: Any, **named: Any) -> Any:
    if isinstance(source, ast.AST):
        for node in ast.walk(source):
            if getattr(node, "end_lineno", None) is not None and node.end_lineno < node.lineno:
                node.end_lineno, node.end_col_offset = node.lineno, node.col_offset + 1
    return _compile(source, *arguments, **named)


builtins.compile = _compile_corrected
sys.argv[0] = "/usr/share/games/renpy/renpy.py"
runpy.run_path(sys.argv[0], run_name="__main__")
