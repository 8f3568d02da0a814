"""Promises about the files themselves: pinned, hosted nowhere, able to run."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.repo.repository import ROOT, text_of, tracked_files

if TYPE_CHECKING:
    from pathlib import Path


# Put together here, so that this file does not name a host itself.
REGISTRIES = [
    ("pypi", ".org"),
    ("python", "hosted"),
    ("npm", "js.org"),
    ("npm", "js.com"),
    ("index.", "crates"),
    ("static.", "crates"),
    ("proxy.", "golang"),
    ("sum.", "golang"),
    ("repo.", "maven"),
    ("repo1.", "maven"),
    ("deb.", "debian"),
]
HOSTS = re.compile("|".join(re.escape("".join(pieces)) for pieces in REGISTRIES))


def pins() -> dict[str, str]:
    lines = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [
        re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;#]+)", line) for line in lines if not line.startswith("#")
    ]
    assert all(found), "each line of the constraints is name==version"
    return {canonicalize_name(match[1]): match[2] for match in found if match}


def wanted() -> list[Requirement]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        document = tomllib.load(file)
    project = document["project"]
    groups = [
        document["build-system"]["requires"],
        project["dependencies"],
        *project["optional-dependencies"].values(),
    ]
    return [Requirement(line) for group in groups for line in group]


def test_the_constraints_pin_what_the_project_wants() -> None:
    pinned = pins()
    ours = [want for want in wanted() if not want.name.startswith("peripety")]
    assert not [str(want) for want in ours if canonicalize_name(want.name) not in pinned]
    assert not [
        str(want) for want in ours if not want.specifier.contains(pinned[canonicalize_name(want.name)])
    ]


def test_the_constraints_pin_what_those_bring_along() -> None:
    pinned = pins()
    loose = {
        f"{name} (for {distribution})"
        for distribution in pinned
        for line in requirements_of(distribution)
        if (need := Requirement(line)).marker is None or need.marker.evaluate({"extra": ""})
        if (name := canonicalize_name(need.name)) not in pinned
    }
    assert not loose


def requirements_of(distribution: str) -> list[str]:
    """Return the requirements of an installed distribution; empty for one that is not installed."""
    try:
        return metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []


def test_no_tracked_file_names_a_package_registry() -> None:
    naming = {str(path.relative_to(ROOT)) for path in tracked_files() if HOSTS.search(text_of(path))}
    assert not naming, "a registry or a mirror is the business of the machine that installs"


def test_the_pattern_for_registries_matches_them() -> None:
    assert HOSTS.search("index-url = https://" + "pypi" + ".org/simple")
    assert not HOSTS.search("published on PyPI and crates.io")


def test_scripts_can_be_run_and_parse() -> None:
    for name in ("run", "native", "cargo"):
        script = ROOT / ".ci" / name
        assert os.access(script, os.X_OK), f"{script} has no run bit"
        shell = "bash" if "bash" in script.read_text(encoding="utf-8").splitlines()[0] else "sh"
        subprocess.run([shell, "-n", str(script)], check=True)


@pytest.mark.parametrize("tool", ["clippy", "fmt"])
@pytest.mark.parametrize("required", ["0", "1"])
def test_a_lint_that_cannot_run_is_named_and_an_error_where_the_native_core_is_required(
    tmp_path: Path,
    tool: str,
    required: str,
) -> None:
    for name, script in {"rustc": "echo rustc 9.0.0", "cargo": "exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [".ci/cargo", tool],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PERIPETY_REQUIRE_NATIVE": required},
    )
    assert done.returncode == int(required)
    assert done.stderr.startswith(f"cargo {tool}: skipped")
    assert "rustup component add rustfmt clippy" in done.stderr


def test_make_help_names_every_target() -> None:
    listing = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    shown = dict(re.findall(r"^  make (\S+) +(\S.*)$", listing, re.MULTILINE))
    described = [line.split("  ## ") for line in text_of(ROOT / "Makefile").splitlines() if "  ## " in line]
    assert shown == {rule.partition(":")[0]: description for rule, description in described}


def test_make_without_a_target_shows_the_help() -> None:
    assert (
        "make play" in subprocess.run(["make"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    )
