"""`peripety policy new-key`, `export`, `import`, and the proxy with a signed policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from peripety.cli.app import app
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from support.engine.policies import policy_document, rule, tool

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = policy_document(tools=[tool("one", "alpha")], rules=[rule("a", "allow")])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["policy", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.json").write_bytes(DOCUMENT)
    assert run("new-key", tmp_path / "key").exit_code == 0
    return tmp_path


def export(folder: Path, version: int = 1) -> Path:
    out = folder / "guard.bundle"
    options = ("--key", folder / "key", "--name", "guard", "--version", version, "-o", out)
    told = run("export", folder / "policy.json", *options)
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith(f"guard, version {version}, policy ")
    return out


def test_a_policy_is_signed_verified_and_written(folder: Path) -> None:
    bundle = export(folder, 7)
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    told = run("import", bundle, "--trust", folder / "key.pub", "-o", folder / "rules")
    assert (told.exit_code, told.stdout.startswith("guard, version 7, policy ")) == (0, True)
    assert json.loads((folder / "rules" / "policy.json").read_bytes()) == json.loads(DOCUMENT)


def test_a_changed_bundle_writes_nothing(folder: Path) -> None:
    bundle = export(folder)
    bundle.write_text(bundle.read_text().replace('"allow"', '"deny"'))
    told = run("import", bundle, "--trust", folder / "key.pub", "-o", folder / "rules")
    assert isinstance(told.exception, FailedPreconditionError)
    assert not (folder / "rules").exists()


def test_the_proxy_refuses_to_start_with_a_policy_that_is_not_trusted(folder: Path) -> None:
    bundle = export(folder)
    run("new-key", folder / "other")
    for policy, key in ((folder / "policy.json", "key.pub"), (bundle, "other.pub")):
        told = run("proxy", "--policy", policy, "--trust", folder / key, "--", "false")
        assert isinstance(told.exception, FailedPreconditionError)
        assert told.exception.code == "POLICY_UNTRUSTED"
    told = run("proxy", "--policy", bundle, "--trust", folder / "key", "--", "false")
    assert isinstance(told.exception, InvalidArgumentError)
    assert told.exception.code == "KEY_INVALID"


def test_keys_are_never_overwritten_and_trust_is_required(folder: Path) -> None:
    before = (folder / "key").read_bytes()
    assert run("new-key", folder / "key").exit_code == 2
    (folder / "key.pub").unlink()
    assert run("new-key", folder / "key").exit_code == 2
    assert (folder / "key").read_bytes() == before
    assert run("import", export(folder)).exit_code == 2
