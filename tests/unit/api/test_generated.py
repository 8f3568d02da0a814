"""The generated code matches the contract, and the contract follows its own rules."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from support.repo.repository import ROOT

PROTOS = ROOT / "protos"
BUF = Path(sysconfig.get_path("scripts")) / "buf"
GENERATED = Path("clients/python/peripety/api")
A_MODULE = GENERATED / "common/v1/common_pb2.py"


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)


def check(root: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "protos/generate.py", "--check", cwd=root)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for part in ("protos", GENERATED):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/constraints.txt", tmp_path / ".ci")
    return tmp_path


def test_generated_code_is_up_to_date() -> None:
    result = check(ROOT)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow_after(1, reason="generates code for each case")
@pytest.mark.parametrize("drift", ["changed", "missing", "left over"])
def test_drift_is_named_and_generating_removes_it(copy: Path, drift: str) -> None:
    path = copy / A_MODULE
    if drift == "changed":
        path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    elif drift == "missing":
        path.unlink()
    else:
        path = path.with_name("gone_pb2.py")
        path.touch()

    result = check(copy)

    assert result.returncode == 1
    assert result.stderr.splitlines() == ["out of date, run `make generate`:", f"  {path.relative_to(copy)}"]
    assert run(sys.executable, "protos/generate.py", cwd=copy).returncode == 0
    assert check(copy).returncode == 0


def test_other_versions_of_the_tools_are_refused(copy: Path) -> None:
    pins = copy / ".ci/constraints.txt"
    pins.write_text("grpcio-tools==1.0.0\nmypy-protobuf==1.0.0\n", encoding="utf-8")

    result = check(copy)

    assert result.returncode == 1
    assert "protos/generate.py needs grpcio-tools==1.0.0 (found " in result.stderr


@pytest.mark.parametrize(
    ("package", "module", "stamp"),
    [
        ("protobuf", "session_pb2.py", r"^# Protobuf Python Version: (\S+)$"),
        ("grpcio", "session_pb2_grpc.py", r"^GRPC_GENERATED_VERSION = '(\S+)'$"),
    ],
)
def test_lower_bounds_admit_no_runtime_that_the_code_refuses(package: str, module: str, stamp: str) -> None:
    text = (ROOT / GENERATED / "session/v1" / module).read_text(encoding="utf-8")
    needed = re.findall(stamp, text, flags=re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [bound for bound in project["dependencies"] if bound.startswith(f"{package}>=")]
    assert bounds == [f"{package}>={needed[0]},<{int(needed[0].partition('.')[0]) + 1}"]


def test_generated_code_imports_without_a_warning() -> None:
    modules = sorted(
        path.relative_to(ROOT / "clients/python").with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / GENERATED).rglob("*_pb2*.py")
    )
    assert modules
    program = f"import {', '.join(modules)}"
    result = run(sys.executable, "-W", "error", "-c", program, cwd=ROOT / "clients/python")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("rule", [("lint",), ("format", "--diff", "--exit-code")], ids=["lint", "format"])
def test_contract_is_clean(rule: tuple[str, ...]) -> None:
    result = run(BUF, *rule, cwd=PROTOS)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_element_without_a_comment_is_found(copy: Path) -> None:
    source = copy / "protos/peripety/api/common/v1/common.proto"
    text = source.read_text(encoding="utf-8")
    source.write_text(text + "\nmessage Bare {\n  string bare = 1;\n}\n", encoding="utf-8")

    result = run(BUF, "lint", cwd=copy / "protos")

    assert result.returncode != 0
    assert 'Field "bare" should have a non-empty comment' in result.stdout
