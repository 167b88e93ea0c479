"""The benchmark of GPUs, at a small size, where the tests run."""

from __future__ import annotations

import pytest

from benchmarks import gpu
from simphys.autograd import runtime

SIZES = (gpu.Size("w3", ("size.n=16", "time.steps=4"), 16**2), gpu.Size("w5", ("size.n=16", "time.steps=4"), 6 * 16))


@pytest.mark.gpu
def test_the_benchmark_measures_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = runtime.settings()
    arguments = ["--arch", chosen.arch, "--precision", chosen.precision, "--repetitions", "2"]
    rows = gpu.main(arguments, SIZES, copied=1000)
    printed = capsys.readouterr().out
    assert printed.count("size.n=16") == len(rows) == len(SIZES)
    assert all(row.milliseconds > 0 and row.nanoseconds > 0 and row.share > 0 for row in rows)
    assert all((row.launches > 0) == chosen.on_gpu for row in rows)
    gpu.main([*arguments, "--seconds", "0"], SIZES, copied=1000)
    assert capsys.readouterr().out.count("not begun") == len(SIZES)
