"""`profile` measures each Function: calls, its own time forward and backward, memory saved."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, InputError, Tensor, enable_grad, no_grad, ops, runtime, tensor
from simphys.autograd.compose.pipe import checkpoint, combine
from simphys.autograd.look import profile as profiling
from simphys.autograd.look.anomaly import AnomalyError, detect_anomaly
from simphys.autograd.look.profile import Row, profile
from simphys.autograd.mode import switch

pytestmark = pytest.mark.gpu

ITEM = np.dtype(runtime.real_dtype()).itemsize
NAP = 0.25
"""[s]"""


class Clock:
    """A clock that goes on in naps alone; its times are exact binary numbers."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


clock = Clock()


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "perf_counter", clock)


def nap(times: int = 1) -> None:
    clock.now += times * NAP


class Slow(Function):
    """x, after a nap forward and two backward."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        nap()
        return x.data.copy()

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        nap(2)
        return adj.data


class Around(Function):
    """Slow twice, and another nap."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        nap()
        return Slow.apply(Slow.apply(x))

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        return adj.data


class Failing(Function):
    """Slow, and then an error, forward or backward, or a result that raises in anomaly mode."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, way: str) -> Any:
        ctx.way = way
        if way == "forward":
            raise ZeroDivisionError(Slow.apply(x))
        return Slow.apply(x).data * np.nan if way == "nan" else x.data.copy()

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        raise ZeroDivisionError(Slow.apply(adj))


def leaf(*values: float) -> Tensor:
    return tensor(values, requires_grad=True)


def rows(p: profile) -> dict[str, Row]:
    return {row.function: row for row in p.rows}


def calls(p: profile) -> dict[str, tuple[int, int]]:
    return {row.function: (row.forward_calls, row.backward_calls) for row in p.rows}


class TestRows:
    def test_calls_are_counted_by_function(self) -> None:
        x = leaf(0.3, 0.7)
        with profile() as p:
            ops.sum(ops.sin(x) * ops.sin(x)).backward()
            ops.exp(x)
        assert calls(p) == {"Sin": (2, 2), "Mul": (1, 1), "Sum": (1, 1), "Exp": (1, 0)}

    def test_nothing_outside_the_block_is_counted(self) -> None:
        x = ops.sin(leaf(0.3))
        with profile() as p:
            y = x * 2.0
        y.backward([1.0])
        assert calls(p) == {"Mul": (1, 0)}

    def test_an_unrecorded_call_is_counted_and_saves_nothing(self) -> None:
        with profile() as p, no_grad():
            ops.sin(leaf(0.3))
        assert calls(p) == {"Sin": (1, 0)}
        assert p.rows[0].bytes_saved == 0

    def test_times_are_those_of_forward_and_backward(self) -> None:
        with profile() as p:
            Slow.apply(leaf(0.3)).backward([1.0])
        (row,) = p.rows
        assert (row.forward, row.backward, row.time) == (NAP, 2 * NAP, 3 * NAP)

    def test_rows_are_sorted_by_time(self) -> None:
        with profile() as p:
            Slow.apply(ops.sin(leaf(0.3))).backward([1.0])
        assert [row.function for row in p.rows] == ["Slow", "Sin"]

    def test_time_is_counted_once_in_nested_functions(self) -> None:
        with profile() as p:
            Around.apply(leaf(0.3))
        found = rows(p)
        assert calls(p) == {"Around": (1, 0), "Slow": (2, 0)}
        assert found["Slow"].forward == 2 * NAP and found["Around"].forward == NAP

    def test_a_replay_is_counted_in_the_rows_of_its_functions(self) -> None:
        with profile() as p:
            checkpoint(Slow.apply, leaf(0.3)).backward([1.0])
        found = rows(p)
        assert calls(p) == {"Checkpoint": (1, 1), "Slow": (2, 1)}
        assert found["Slow"].forward == found["Slow"].backward == 2 * NAP
        assert found["Checkpoint"].time == 0.0

    def test_combined_nodes_of_one_name_share_a_row(self) -> None:
        with profile() as p:
            for _ in range(3):
                combine(ops.sin, ops.exp)(leaf(0.3))
        assert calls(p)["Combine(sin, exp)"] == (3, 0)

    def test_memory_is_that_of_the_nodes(self) -> None:
        x = tensor(np.ones(100), requires_grad=True)
        with profile() as p:
            x * x  # one memory, saved twice
            x + x
            ops.sin(ops.sin(x))
        saved = {row.function: row.bytes_saved for row in p.rows}
        assert saved == {"Mul": 100 * ITEM, "Add": 0, "Sin": 200 * ITEM}

    def test_memory_of_inner_graphs_is_in_the_inner_rows(self) -> None:
        x = tensor(np.ones(100), requires_grad=True)
        with profile() as p:
            combine(ops.sin, ops.exp, save="all")(x)
        saved = {row.function: row.bytes_saved for row in p.rows}
        assert saved["Sin"] == saved["Exp"] == 100 * ITEM
        assert saved["Combine(sin, exp)"] == 200 * ITEM  # its input and its output


class TestText:
    def test_a_short_description_names_the_most_expensive_functions(self) -> None:
        x = tensor(np.ones(10), requires_grad=True)
        with profile() as p:
            for each in (ops.sin, ops.exp, ops.tanh, ops.sqrt, ops.cos, Slow.apply):
                each(x)
        first, slowest, *_, rest = repr(p).splitlines()
        assert first == "Profile of 6 Functions" and slowest.startswith("  Slow  ")
        assert rest.startswith("  and 2 more  ") and len(repr(p).splitlines()) == 6


class TestNodes:
    def test_the_profile_has_the_cost_of_a_node(self) -> None:
        x = tensor(np.ones(100), requires_grad=True)
        with profile() as p:
            y = Slow.apply(ops.sin(x))
            before = p.of(y.grad_fn)
            sine = y.grad_fn.next_functions[0][0]
            y.backward(np.ones(100), retain_graph=True)
            once = p.of(y.grad_fn)
            y.backward(np.ones(100))
            twice = p.of(y.grad_fn)
        assert before is not None and before.forward == NAP and before.backward is None
        assert once is not None and once.backward is not None and once.backward == 2 * NAP
        assert twice is not None and twice.backward == 4 * NAP
        assert twice.forward == before.forward
        found = p.of(sine)
        assert found is not None and found.bytes_saved == 100 * ITEM

    def test_a_node_that_was_made_outside_of_the_block_has_none(self) -> None:
        before = ops.sin(leaf(0.3))
        with profile() as p:
            before.backward([1.0])
        after = ops.sin(leaf(0.3))
        assert before.grad_fn is not None and after.grad_fn is not None
        assert p.of(before.grad_fn) is None
        assert p.of(after.grad_fn) is None
        assert calls(p) == {"Sin": (0, 1)}

    def test_the_cost_of_a_combined_node_includes_inner_functions(self) -> None:
        x = tensor(np.ones(100), requires_grad=True)
        with profile() as p:
            replayed = checkpoint(Slow.apply, x)
            kept = combine(ops.exp, Slow.apply, ops.exp, save="all")(ops.sin(x))
            ops.sum(replayed * kept).backward(retain_graph=True)
        assert replayed.grad_fn is not None and kept.grad_fn is not None
        one, other = p.of(replayed.grad_fn), p.of(kept.grad_fn)
        assert one is not None and one.backward is not None and other is not None and other.backward is not None
        assert one.forward == NAP and one.backward == 3 * NAP
        assert other.forward == NAP and other.backward == 2 * NAP
        assert 100 * ITEM <= one.bytes_saved < 110 * ITEM  # the input, and what tells whether a replay is the same
        assert other.bytes_saved == 300 * ITEM  # input, output, and the result of the first exp


class TestTable:
    def test_it_has_a_line_for_each_function_and_the_total(self) -> None:
        x = tensor(np.ones(1000), requires_grad=True)
        with profile() as p:
            for _ in range(2):
                ops.sum(Slow.apply(x * x)).backward()
        lines = str(p).splitlines()
        assert lines[0].split("  ")[0] == "Function"
        assert lines[1] == lines[-2] == "-" * len(lines[0])
        assert [line.split()[0] for line in lines[2:-2]] == [row.function for row in p.rows]
        assert len({len(line) for line in lines}) == 1
        total = lines[-1].split()
        assert total[:3] == ["total", "6", "6"]
        assert total[-1] == f"{2 * 1000 * ITEM:,}"
        assert total[3:6] == ["500.000", "1,000.000", "1,500.000"]

    def test_an_empty_one(self) -> None:
        with profile() as p:
            pass
        assert str(p).splitlines()[-1].split() == ["total", "0", "0", "0.000", "0.000", "0.000", "0"]


class TestBlock:
    def test_it_adds_up_when_entered_again(self) -> None:
        p = profile()
        for _ in range(2):
            with p:
                ops.sin(leaf(0.3))
            ops.sin(leaf(0.3))
        assert calls(p) == {"Sin": (2, 0)}

    def test_one_inside_another(self) -> None:
        with profile() as outer:
            ops.sin(leaf(0.3))
            with profile() as inner:
                ops.sin(leaf(0.3))
        assert calls(outer) == {"Sin": (2, 0)}
        assert calls(inner) == {"Sin": (1, 0)}

    def test_one_inside_itself_is_refused(self) -> None:
        with profile() as p:
            with pytest.raises(InputError, match="Use another profile"), p:
                pass
            ops.sin(leaf(0.3))
        assert calls(p) == {"Sin": (1, 0)}
        assert not switch.observers

    def test_a_block_that_ends_inside_a_function(self) -> None:
        p = profile()

        class Leaving(Function):
            """-x; the block ends within."""

            @staticmethod
            def forward(ctx: Context, x: Tensor) -> Any:
                y = ops.neg(x)
                p.__exit__(None, None, None)
                return y

            @staticmethod
            def backward(ctx: Context, adj: Tensor) -> Any:
                return -adj.data

        p.__enter__()
        Leaving.apply(leaf(0.3))
        assert calls(p) == {"Neg": (1, 0)}

    @pytest.mark.parametrize("way", ["forward", "backward", "nan"])
    def test_a_failed_call_is_not_counted_and_inner_calls_count_once(self, way: str) -> None:
        def run(x: Tensor) -> Tensor:
            with pytest.raises((ZeroDivisionError, AnomalyError)), enable_grad():
                Failing.apply(leaf(0.3), way).backward([1.0])
            return Slow.apply(x)

        before = clock.now
        with detect_anomaly(), profile() as p:
            y = checkpoint(run, leaf(0.3))
        assert calls(p) == {"Checkpoint": (1, 0), "Slow": (2, 0)} | ({"Failing": (1, 0)} if way == "backward" else {})
        cost = p.of(y.grad_fn)
        assert cost is not None and cost.forward == clock.now - before
        assert sum(row.time for row in p.rows) == clock.now - before

    def test_memory_is_free_without_a_garbage_collection(self) -> None:
        gc.disable()
        try:
            with profile():
                y = combine(ops.sin, ops.exp)(leaf(0.3) * 2.0)
                assert y.grad_fn is not None
                node = weakref.ref(y.grad_fn)
                y.backward([1.0])
                del y
                assert node() is None
        finally:
            gc.enable()

    def test_it_works_together_with_anomaly_mode(self) -> None:
        with detect_anomaly(), profile() as p, np.errstate(divide="ignore"):
            with pytest.raises(AnomalyError):
                checkpoint(ops.log, leaf(0.0))
            ops.sin(leaf(0.3)).backward([1.0])
        assert calls(p)["Sin"] == (1, 1)
        assert "Checkpoint" not in calls(p)
