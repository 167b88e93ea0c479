"""The simulator of docs/new_simulator.md as a package of its own: installed, named by scenes, run by every command."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from simphys.record import Recording
from simphys.scenefile import ConfigError, load

from .test_guide import DOCS, blocks

ROOT = DOCS.parent
TEXT = (DOCS / "new_simulator.md").read_text()
SIMULATOR, _, REST = TEXT.partition("## What comes for free")
CONFIG = REST.partition("## A scene file")[2]
SCENE = re.findall(r"^```toml\n(.*?)^```", CONFIG, re.DOTALL | re.MULTILINE)[0]
ENTRY_POINT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "oscillators"
version = "0.1"

[tool.setuptools]
py-modules = ["oscillators"]
"""


def source() -> str:
    """Collect the blocks of the page with the simulator and its Config, without those that print."""
    written = [block.source for text in (SIMULATOR, CONFIG) for block in blocks(text) if "print(" not in block.source]
    return "\n".join([*written[:-1], "from simphys.autograd import InputError", written[-1]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the module, its pyproject.toml, the scene and a film of two oscillators."""
    made = tmp_path_factory.mktemp("oscillators")
    (made / "oscillators.py").write_text(source())
    entry_point = re.findall(r"^```toml\n(.*?)^```", CONFIG, re.DOTALL | re.MULTILINE)[1]
    (made / "pyproject.toml").write_text(ENTRY_POINT + entry_point)
    (made / "scene.toml").write_text(SCENE)
    t = np.arange(0, 5, 0.1)[:, None]
    k, c = np.array([12.0, 30.0]), np.array([0.3, 0.5])
    rate, fade = np.sqrt(k - c**2 / 4), c / 2
    x = np.array([1.0, -0.5]) * np.exp(-fade * t) * (np.cos(rate * t) + fade / rate * np.sin(rate * t))
    x += 0.005 * np.random.default_rng(1).standard_normal(x.shape)
    np.savetxt(made / "film.txt", np.hstack([t, x]))
    return made


@pytest.fixture(scope="module")
def python(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment in which the package is installed beside simphys; return its Python."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    found = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    ask: list[str | Path] = [found, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    (site / "libraries.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    install: list[str | Path] = [
        "-m",
        "pip",
        "--python",
        found,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([sys.executable, *install, folder], check=True, capture_output=True)
    return found


def simphys(python: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [python, "-c", "from simphys.app.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_an_installed_package_is_named_by_its_entry_point_or_by_its_path(
    python: Path, folder: Path, tmp_path: Path
) -> None:
    for file in ("scene.toml", "film.txt"):
        (tmp_path / file).write_text((folder / file).read_text())
    by_entry_point, by_path = "simulator.name=oscillators", "simulator.name=oscillators:OscillatorConfig"
    done = simphys(python, tmp_path, "optimize", "scene.toml", by_entry_point, "output.folder=run")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "doubtful  time step" in done.stdout  # Euler steps are of first order
    assert {"run.h5", "fit.png"} <= {path.name for path in (tmp_path / "run").iterdir()}
    found = Recording(tmp_path / "run")["unknowns/value"]
    np.testing.assert_allclose(found, [12.0, 30.0, 0.3, 0.5], rtol=0.1)
    for command in (["run", "scene.toml", "output.folder=motion", by_path], ["check", "scene.toml", by_entry_point],
                    ["health", "scene.toml", by_entry_point], ["graph", "scene.toml", by_path],
                    ["plot", "run"], ["plot", "motion"], ["schema", "schema.json"]):  # fmt: skip
        done = simphys(python, tmp_path, *command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "OscillatorConfig" in (tmp_path / "schema.json").read_text()


def test_a_module_in_the_current_folder_needs_no_installation(folder: Path, tmp_path: Path) -> None:
    done = simphys(Path(sys.executable), folder, "run", "scene.toml", f"output.folder={tmp_path / 'run'}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:Config", "No module named 'nowhere'. Install the package, or run where Python finds the module."),
        ("pathlib:Nothing", "pathlib holds no such name as Nothing: name a subclass of simphys.scenefile.Config."),
        ("pathlib:Path", "as Path: name a subclass of simphys.scenefile.Config."),
        ("oscillator", 'One of your own: "package.module:ConfigClass".'),
    ],
)
def test_a_name_that_leads_nowhere_is_reported(folder: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(folder / "scene.toml", [f"simulator.name={name}"])
    (error,) = [each for each in caught.value.errors if "simulator.name" in str(each)]
    assert message in str(error)


def test_what_does_not_fit_is_reported_by_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ConfigError) as caught:
        load(folder / "scene.toml", ["material.mass=[1.0]"])
    assert "material.mass: must have 2 elements, one for each of start.position; found [1.0]" in str(caught.value)
