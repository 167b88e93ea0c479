"""A checkout, an editable install, a wheel and a wheel from an sdist all give the same package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHERE = "import simphys.autograd as a, simphys.autograd.ops as o; print(a.__file__, o.__file__)"
OTHER_AUTOGRAD = "import importlib.util as u; print(u.find_spec('autograd').origin)"


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without PYTHONPATH and return its output; if it fails, the message has its errors."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a wheel, an sdist or an editable wheel by the backend's own hook, offline; return its path."""
    hook = f"import sys; from setuptools import build_meta as b; b.build_{kind}(sys.argv[1])"
    run(sys.executable, "-c", hook, target, cwd=source)
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the files that packaging reads, with the symbolic link, so that building leaves nothing in the checkout."""
    copy = tmp_path_factory.mktemp("checkout")
    for path in (ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")):
        shutil.copy(path, copy)
    for package in ("simphys", "autograd"):
        shutil.copytree(ROOT / package, copy / package, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", checkout, tmp_path_factory.mktemp("wheel"))


def environment(folder: Path, built: Path) -> Path:
    """Make an environment with `built` and, after it, this environment's libraries; return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder))
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    install = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*install, "--ignore-installed", built, cwd=folder)
    return python


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("regular") / "venv", wheel)


def modules(folder: Path, name: str) -> set[str]:
    """List the import paths of a folder's Python files, as expected in a wheel."""
    return {(Path(name) / path.relative_to(folder)).as_posix() for path in folder.rglob("*.py")}


def test_every_package_is_listed() -> None:
    inits = {path for path in modules(ROOT / "autograd", "simphys/autograd") if path.endswith("/__init__.py")}
    inits |= {path for path in modules(ROOT / "simphys", "simphys") if path.endswith("/__init__.py")}
    found = {path.removesuffix("/__init__.py").replace("/", ".") for path in inits}
    assert sorted(SETTINGS["tool"]["setuptools"]["packages"]) == sorted(found)


def test_a_wheel_holds_exactly_the_sources_under_their_import_names(wheel: Path, checkout: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = modules(checkout / "simphys", "simphys") | modules(checkout / "autograd", "simphys/autograd")
    data = [path for folder in ("report/page", "app/starts") for path in (checkout / "simphys" / folder).iterdir()]
    assert names == expected | {"simphys/py.typed"} | {path.relative_to(checkout).as_posix() for path in data}
    assert len(data) == 4 + 14


def test_a_wheel_from_an_sdist_is_the_same(wheel: Path, checkout: Path, tmp_path: Path) -> None:
    for folder in ("sdist", "unpacked", "wheel"):
        (tmp_path / folder).mkdir()
    shutil.unpack_archive(build("sdist", checkout, tmp_path / "sdist"), tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build("wheel", source, tmp_path / "wheel")
    with zipfile.ZipFile(again) as ours, zipfile.ZipFile(wheel) as direct:
        assert {i.filename: i.CRC for i in ours.infolist()} == {i.filename: i.CRC for i in direct.infolist()}


def test_a_regular_install_holds_real_files_and_no_other_name(installed: Path, tmp_path: Path) -> None:
    site = Path(run(installed, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path))
    package = site / "simphys" / "autograd"
    assert run(installed, "-c", WHERE, cwd=tmp_path) == f"{package / '__init__.py'} {package / 'ops' / '__init__.py'}"
    assert not package.is_symlink()
    assert not (site / "autograd").exists()


def test_an_install_brings_the_command(installed: Path, tmp_path: Path) -> None:
    assert "optimize" in run(installed.parent / "simphys", "--help", cwd=tmp_path)


def test_an_editable_install_follows_the_checkout(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "wheel").mkdir()
    python = environment(tmp_path / "venv", build("editable", checkout, tmp_path / "wheel"))
    for path in run(python, "-c", WHERE, cwd=tmp_path).split():
        assert Path(path).resolve().is_relative_to(checkout / "autograd")
    (tmp_path / "holder").mkdir()
    (tmp_path / "holder" / "simphys").symlink_to(checkout)  # a clone named like the package, where Python starts
    found = run(python, "-c", "import simphys; print(simphys.__file__)", cwd=tmp_path / "holder")
    assert found == str(checkout / "simphys" / "__init__.py")
    other = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)) / "autograd"
    other.mkdir()
    (other / "__init__.py").touch()  # another project's package of this name keeps it
    assert run(python, "-c", OTHER_AUTOGRAD, cwd=tmp_path) == str(other / "__init__.py")


def test_a_checkout_works_uninstalled(checkout: Path) -> None:
    for path in run(sys.executable, "-c", WHERE, cwd=checkout).split():
        assert path.startswith(str(checkout / "simphys" / "autograd"))


def test_the_folder_refuses_its_own_name(checkout: Path) -> None:
    code = "try:\n    import autograd\nexcept ImportError as error:\n    print(error)"
    message = run(sys.executable, "-c", code, cwd=checkout)
    assert "this folder is simphys.autograd and was imported as 'autograd'" in message
    assert "from simphys.autograd import" in message


def test_a_type_checker_sees_the_installed_types(installed: Path, tmp_path: Path) -> None:
    code = "from simphys.autograd.errors import InputError; reveal_type(InputError('', '', 0, '').source)"
    mypy = (sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", "--no-incremental")
    assert 'Revealed type is "str"' in run(*mypy, "--python-executable", installed, "-c", code, cwd=tmp_path)
