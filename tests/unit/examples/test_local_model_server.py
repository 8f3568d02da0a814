from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING

from support.repo.repository import ROOT

if TYPE_CHECKING:
    import pytest

_SCRIPT = ROOT / "examples" / "local_model_server.py"


def test_without_its_packages_the_server_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert runpy.run_path(str(_SCRIPT))["main"]([]) == 1
    assert "peripety[llm]" in capsys.readouterr().err
