from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_SCRIPT = Path(__file__).parents[3] / "examples" / "local_model_server.py"


def test_without_its_packages_the_server_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert runpy.run_path(str(_SCRIPT))["main"]([]) == 1
    assert "peripety[llm]" in capsys.readouterr().err
