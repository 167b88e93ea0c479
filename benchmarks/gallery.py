"""The gallery page docs/scenes.md: every scene that ships, with its picture, its command, and its measured cost.

    python -m benchmarks.gallery                      # all scenes, some 15 minutes
    python -m benchmarks.gallery rigid heat/source    # some of them; the others stay as they are

Each scene runs in a process of its own, in runs/gallery; its time and memory are those that its run records. Scenes
that take minutes run for fewer iterations, and their commands say so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from simphys.app.start_scene import CHECKOUT, list_scenes
from simphys.record import Recording
from simphys.report.build import read_status
from simphys.rollout.budget import format_size

ROOT = Path(__file__).resolve().parents[1]
PAGE, PICTURES = ROOT / "docs" / "scenes.md", ROOT / "docs" / "pictures" / "scenes"
MEASURED = PICTURES / "measured.json"
RUNS = Path("runs/gallery")
FEWER = {
    "elastic/section": 1,
    "mass_spring/robot_14": 6,
    "mass_spring/robot_20": 6,
    "mass_spring/robot_26": 6,
    "mpm/crawler": 6,
    "mpm/liquid": 1,
    "mpm/press": 6,
    "mpm/throw": 6,
    "mpm/walker": 6,
    "shallow_water/harbour": 6,
    "smoke/drag": 6,
    "smoke/picture": 6,
    "smoke/taylor_green": 6,
    "wave/inversion": 6,
}
"""Numbers of iterations of scenes that take minutes, or memory, with their own."""
KINDS = ("medium", "particles", "snapshots", "trajectory", "fields")
"""Pictures that may stand for a scene, the best first."""
WIDTH, COLOURS = 640, 256
HEAD = """# All scenes

Every scene that ships, with the command that runs it, and the time and the memory that this took on {machine},
other work beside it. Times hold the compilation of kernels. Made by `python -m benchmarks.gallery`. Scenes that take
minutes stand here with fewer iterations than they ask for. [The gallery](gallery.md) explains some of them.
"""


def main(chosen: Sequence[str]) -> None:
    """Run the chosen scenes, by simulator or by name, or all of them, and write the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    measured = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    for line in list_scenes(CHECKOUT):
        path = (ROOT / line.path).resolve().relative_to(CHECKOUT)
        name = str(path.with_suffix(""))
        if chosen and name not in chosen and name.partition("/")[0] not in chosen:
            continue
        print(name, flush=True)
        measured[name] = {"title": line.title, "simulator": line.simulator} | measure(name, line.command)
        MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(make_page(measured))


def measure(name: str, command: str) -> dict[str, Any]:
    """Run a scene; return its command, time [s], peak memory [B] and status, and save its picture."""
    overrides = [f"optimizer.iterations={FEWER[name]}"] if name in FEWER else []
    folder = RUNS / name.replace("/", "_")
    asked = [command, f"scenes/{name}.toml", *overrides]
    code = "from simphys.app.cli import main; main()"
    arguments = [*asked, f"output.folder={folder}", "--overwrite"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if not (ROOT / folder / "run.h5").exists():
        raise SystemExit(f"{name} has failed:\n{done.stderr[-2000:]}")
    recording = Recording(ROOT / folder)
    cost, status = recording.attrs("cost"), read_status(recording)
    achieved = [str(text) for text in recording["achieved/text"]] if "achieved/text" in recording else []
    return {
        "command": f"simphys {' '.join(asked)}",
        "seconds": cost["seconds"],
        "memory": cost.get("peak_memory"),
        "status": status.word,
        "achieved": achieved,
        "picture": save_picture(name, ROOT / folder),
    }


def save_picture(name: str, folder: Path) -> str:
    """Save the picture of a run that stands for its scene, small; return its name."""
    found = [path for kind in KINDS for path in sorted(folder.glob(f"{kind}*.png"))]
    target = PICTURES / f"{name.replace('/', '_')}.png"
    image = Image.open(found[0]).convert("RGB")
    small = image.resize((WIDTH, round(WIDTH * image.height / image.width)), Image.Resampling.LANCZOS)
    # By coverage: a median cut merges the few pixels of a legend with larger areas, and an octree the shades of a bar.
    few = small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(target, optimize=True)
    return target.name


def make_page(measured: dict[str, Any]) -> str:
    """Write the page of what was measured."""
    parts = [HEAD.format(machine=describe_machine())]
    for simulator in dict.fromkeys(name.partition("/")[0] for name in sorted(measured)):
        parts.append(f"## {simulator.replace('_', ' ').capitalize()}\n")
        for name in sorted(each for each in measured if each.partition("/")[0] == simulator):
            about = measured[name]
            memory = "" if about["memory"] is None else f", {format_size(int(about['memory']))}"
            whole = "iterations=" not in about["command"] and about["status"] != "completed"
            ended = f" ({about['status']})" if whole else ""
            parts.append(f"### {about['title']}\n")
            parts.append(f"`{about['command']}`: {format_time(about['seconds'])}{memory}{ended}.\n")
            parts += [f"{text[0].upper()}{text[1:]}.\n" for text in about["achieved"]]
            parts.append(f"![{about['title']}](pictures/scenes/{about['picture']})\n")
    return "\n".join(parts)


def format_time(seconds: float) -> str:
    """Format a time [s] with two digits, long ones in minutes."""
    return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds / 60:.2g} min"


def describe_machine() -> str:
    """Describe the processor, and how many of its cores there are."""
    import os

    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    count = os.cpu_count() or 1
    return f"{names[0] if names else 'one machine'}, {count} core{'s' if count > 1 else ''}"


if __name__ == "__main__":
    main(sys.argv[1:])
