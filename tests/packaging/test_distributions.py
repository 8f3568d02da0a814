"""What is built can be installed elsewhere and lacks nothing."""

from __future__ import annotations

import tarfile
import zipfile
from typing import TYPE_CHECKING

from peripety import engine
from peripety.version import __version__
from support.repo.repository import ROOT, tracked_files

if TYPE_CHECKING:
    from support.repo.repository import Distributions, Installation


PACKAGE = ROOT / "services" / "peripety"

IMPORT_ALL = """
import pkgutil, peripety
names = [module.name for module in pkgutil.walk_packages(peripety.__path__, "peripety.")]
for name in names:
    if not name.endswith(("._native", ".__main__")):
        __import__(name)
print(peripety.__file__, len(names))
"""


def test_the_wheel_holds_every_file_of_the_package(distributions: Distributions) -> None:
    packed = set(zipfile.ZipFile(distributions.wheel).namelist())
    wanted = {
        str(path.relative_to(ROOT / "services")) for path in tracked_files() if path.is_relative_to(PACKAGE)
    }
    assert wanted <= packed
    assert {"peripety/py.typed", "peripety/sim/schemas/scenario_spec.schema.json"} <= packed


def test_the_wheel_holds_nothing_else(distributions: Distributions) -> None:
    packed = zipfile.ZipFile(distributions.wheel).namelist()
    top = {name.split("/")[0] for name in packed}
    assert top == {"peripety", f"peripety-{__version__}.dist-info"}
    assert not [name for name in packed if "__pycache__" in name or name.endswith(".so")]


def test_the_sdist_can_be_built_and_tested_from(distributions: Distributions) -> None:
    with tarfile.open(distributions.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"} <= names
    assert {"services/peripety/py.typed", "tests/nouns.txt", "protos/generate.py"} <= names


def test_the_installed_command_names_its_version_and_core(installation: Installation) -> None:
    said = installation.run("peripety", "--version").stdout
    assert said == f"peripety {__version__} (core: {engine.BACKEND} {engine.BACKEND_VERSION})\n"


def test_the_installed_package_offers_its_plugin_to_pytest(installation: Installation) -> None:
    listing = "from importlib.metadata import entry_points; print(*entry_points(group='pytest11').names)"
    assert "peripety.pytest_plugin" in installation.run("python", "-c", listing).stdout.split()


def test_every_module_can_be_imported_where_it_was_installed(installation: Installation) -> None:
    file, count = installation.run("python", "-W", "error", "-c", IMPORT_ALL).stdout.split()
    assert file.startswith(str(installation.site))
    assert int(count) > 20


def test_python_dash_m_is_the_command(installation: Installation) -> None:
    said = installation.run("python", "-m", "peripety", "--version").stdout
    assert said == installation.run("peripety", "--version").stdout


def test_the_reference_core_can_be_asked_for(installation: Installation) -> None:
    code = (
        "import os; os.environ['PERIPETY_SIMCORE'] = 'python'; from peripety import "
        "engine; print(engine.BACKEND)"
    )
    assert installation.run("python", "-c", code).stdout == "python\n"
