import os
from pathlib import Path

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.rollout import budget


@pytest.mark.parametrize(
    ("memory", "size"),
    [
        ("2GB", 2 * 10**9),
        ("500 MB", 500 * 10**6),
        ("1.5GiB", 3 * 2**29),
        (" 64 kib ", 2**16),
        (".5kB", 500),
        ("1TB", 10**12),
        ("7 B", 7),
        (1, 1),
        (4096, 4096),
        (np.int64(4096), 4096),
    ],
)
def test_a_size_in_words_or_bytes(memory: str | int, size: int) -> None:
    assert budget.parse(memory) == size


def test_all_is_without_limit() -> None:
    assert budget.parse("all") is None


def test_a_float_is_a_part_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "measure_free", lambda: 1000)
    assert budget.parse(0.25) == 250
    assert budget.parse(1.0) == 1000
    assert budget.parse(np.float32(0.5)) == 500


@pytest.mark.parametrize(
    "memory", ["", "lots", "2", "2 XB", "GB", "-1GB", "0GB", "1,5GB", 0, -5, 0.0, 1.5, -0.5, float("nan"), True, None]
)
def test_nonsense_is_named_with_what_to_write_instead(memory: object) -> None:
    with pytest.raises(InputError, match='Write "all", a size such as "2GB"') as raised:
        budget.parse(memory)
    assert raised.value.found == memory or memory != memory


def meminfo(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (folder / "meminfo").write_text(text)
    monkeypatch.setattr(budget, "_MEMINFO", folder / "meminfo")
    monkeypatch.setattr(budget, "_CONTAINER", folder)


def test_free_is_what_linux_calls_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo(tmp_path, monkeypatch, "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:      70 kB\n")
    assert budget.measure_free() == 70 * 1024


@pytest.mark.parametrize(("limit", "free"), [("max", 70 * 1024), ("50000", 50_000 - 12_000 + 2_000), ("9000", 0)])
def test_a_container_has_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, free: int) -> None:
    meminfo(tmp_path, monkeypatch, "MemAvailable: 70 kB\n")
    (tmp_path / "memory.max").write_text(limit + "\n")
    (tmp_path / "memory.current").write_text("12000\n")
    (tmp_path / "memory.stat").write_text("active_file 500\ninactive_file 2000\n")
    assert budget.measure_free() == free


def test_an_unknown_free_memory_is_an_error_that_asks_for_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(name: str) -> int:
        raise ValueError(f"unrecognized configuration name: {name}")

    monkeypatch.setattr(budget, "_MEMINFO", tmp_path / "none")
    monkeypatch.setattr(os, "sysconf", unknown)
    with pytest.raises(InputError, match='Give the budget as a size, such as "2GB"'):
        budget.parse(0.5)


def test_free_here_is_between_a_megabyte_and_the_machine() -> None:
    assert 10**6 < budget.measure_free() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1700, "1.7 kB"),
        (9.97e6, "10 MB"),
        (214e6, "214 MB"),
        (999_600, "1.0 MB"),
        (3e15, "3000 TB"),
    ],
)
def test_sizes_for_people(size: float, text: str) -> None:
    assert budget.format_size(size) == text
