"""Each guard against what would be silently wrong is needed: its test fails when it is broken."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from simphys.autograd import graph, mode
from simphys.autograd.compose import replay
from simphys.autograd.context import Context, _as_guarded_tensor
from simphys.autograd.errors import InputError, Portable
from simphys.autograd.kernels import runtime
from simphys.autograd.kernels.arguments import ArrayParameter
from simphys.autograd.kernels.memory import Held, Memory
from simphys.autograd.kernels.writes import _Source
from simphys.autograd.tensor import Tensor, _leaf
from simphys.files import columns
from simphys.record import recorder, storage
from simphys.rollout import run
from simphys.simulator.contract import ModelType

from ..autograd import test_compose as of_compose
from ..autograd import test_copies as of_copies
from ..autograd import test_function as of_function
from ..autograd import test_graph as of_graph
from ..autograd import test_hidden_writes as of_writes
from ..autograd import test_in_place as of_writes_in_place
from ..autograd import test_mode as of_mode
from ..autograd import test_saved_arrays as of_saved
from ..autograd import test_tensor as of_tensor
from ..autograd import test_threads_and_forks as of_threads
from ..files import test_columns as of_columns
from ..record import test_damage as of_damage
from ..rollout import test_inputs as of_inputs
from ..simulators import test_locked_models as of_models
from ..simulators.smoke import test_numbers as of_numbers
from .guards import Guard, is_noticed, run_test

function = importlib.import_module("simphys.autograd.function")  # the name in the package is that of the module's class


def hidden(what: str, method: str, before: str, after: str, writer: str) -> Guard:
    """A guard of the analysis of sources, and a kernel that writes in the way that it resolves."""
    test = of_writes.test_each_hidden_write_raises_the_version
    return Guard(what, getattr(_Source, method), before, after, test, (writer,))


def a_locked_array_is_refused() -> None:
    x = np.ones(1, of_writes.dtype)
    x.flags.writeable = False
    with pytest.raises(InputError, match="found a read-only array"):
        of_writes.kernel(of_writes.WRITERS["chosen"])(x, np.ones(1, of_writes.dtype))


STATIC = "return self._places(call.args[0], fields, seen)"
WRITES = [
    hidden("one of two", "_places", "self._places(yes, fields, seen) | ", "", "chosen_in_place"),
    hidden("what ti.static gives", "_result", STATIC, "return set()", "function_of_static"),
    hidden("loops over parts", "_aliases", "ast.For | ast.comprehension", "ast.comprehension", "zipped"),
    hidden("parts of a tuple", "_part", "self._places(part, fields[1:], seen)", "()", "member_of_static"),
    hidden("lists made in place", "_places", "self._places(element, fields[1:], seen)", "set()", "comprehension"),
    hidden("renamed atomics", "_written_by", " or is_atomic(callee)", "", "renamed_atomic"),
    hidden("atomics from getattr", "_callee", "eval(", "None and eval(", "looked_up_atomic"),
    hidden("names made here", "_written_by", "self._all_places(arrays + elements)", "set()", "renamed_here"),
    hidden("starred arguments", "_written_inside", "names[position:]", "()", "function_of_star"),
    hidden(
        "templates",
        "_written_inside",
        "inside.places:\n        if place",
        "():\n        if place",
        "function_of_choice",
    ),
    Guard(
        "results of calls, and their arguments",
        _Source._result,
        "owner + call_arguments(call)",
        "owner",
        of_writes.test_each_hidden_write_raises_the_version,
        ("picked",),
        also=(
            _Source._written_by,
            "self._all_places(arrays)), frozenset()\n    return",
            "set()), frozenset()\n    return",
        ),
    ),
    Guard(
        "read-only arrays",
        ArrayParameter.check,
        "if self.written and array is value and not array.flags.writeable:",
        "if False:",
        a_locked_array_is_refused,
    ),
]
COPIES = [
    Guard(
        "a shallow copy is a leaf of its own",
        Tensor.__copy__,
        "return alias.requires_grad_(self.requires_grad)",
        "pass",
        of_copies.test_a_copy_of_a_leaf_has_its_own_gradient,
        ("copy",),
    ),
    Guard(
        "a deep copy has memory of its own",
        _leaf,
        'np.array(array, order="C")',
        "array",
        of_copies.test_a_deep_copy_has_its_own_memory_and_version,
        ("deepcopy",),
    ),
    Guard(
        "no copy of a result",
        Tensor._leaf_parts,
        "if not self.is_leaf:",
        "if False:",
        of_copies.test_a_deep_copy_of_a_result_is_refused,
        ("pickle",),
    ),
]
SAVED = [
    Guard(
        "saved while open for writing",
        Context.keep,
        "if switch.open and any(self.edges):",
        "if False:",
        of_saved.test_an_operation_on_a_tensor_that_is_open_for_writing_is_refused,
    ),
    Guard(
        "a view that outlives the block",
        Memory.writable,
        "if sys.getrefcount(root) > references:",
        "if False:",
        of_saved.test_a_view_that_outlives_the_block_is_refused,
    ),
    Guard(
        "memory of a bound launch",
        Memory.__init__,
        "if id(array) in held:",
        "if False:",
        of_saved.test_what_a_bound_launch_writes_does_not_become_a_tensor,
    ),
    Guard(
        "memory of a bound launch that is returned",
        function.Function.apply,
        " and id(result) not in held",
        "",
        of_saved.test_what_a_bound_launch_writes_does_not_become_a_tensor,
    ),
    Guard(
        "memory of which a bound launch writes a part",
        Held.__init__,
        "(each, each.base)",
        "(each,)",
        of_saved.test_a_whole_array_of_which_a_bound_launch_writes_a_part_does_not_become_a_tensor,
    ),
    Guard(
        "the memory of a Tensor as an array",
        Context.separate,
        "if references > 2 + users:",
        "if False:",
        of_saved.test_the_memory_of_a_tensor_is_saved_as_a_copy,
        also=(
            _as_guarded_tensor,
            'value if value.base is None and value.flags.carray else value.copy(order="C")',
            "value",
        ),
    ),
    Guard(
        "an array with a view",
        Context.separate,
        "if references > 2 + users:",
        "if False:",
        of_saved.test_an_array_with_a_view_elsewhere_is_saved_as_a_copy,
    ),
    Guard(
        "Tensors in a list",
        _as_guarded_tensor,
        "if type(each) is Tensor:",
        "if False:",
        of_saved.test_tensors_inside_another_value_are_refused,
        (lambda x: [x],),
    ),
]
GRAPH = [
    Guard(
        "gradients apart",
        graph._accumulate,
        "adjoint.clone() if tensor.grad is None",
        "adjoint if tensor.grad is None",
        of_graph.test_gradients_with_a_graph_are_tensors_of_their_own,
    ),
    Guard(
        "results of grad apart",
        graph._apart,
        "each = each.clone()",
        "pass",
        of_graph.test_gradients_with_a_graph_are_tensors_of_their_own,
    ),
    Guard(
        "retain_grad before and after a write",
        function.link,
        ".retained.pop(before[1], False)",
        ".retained.get(before[1], False)",
        of_writes_in_place.test_a_retained_gradient_is_of_the_values_after_the_write,
        ("both",),
    ),
    Guard(
        "equality of elements",
        Tensor.__eq__,
        "return self._compare(np.equal, other)",
        "return self is other",
        of_tensor.test_equality_is_elementwise,
    ),
    Guard(
        "requires_grad_(False) after forward",
        graph._traverse,
        "if leaf is not None and leaf.requires_grad:",
        "if leaf is not None:",
        of_graph.test_a_leaf_that_no_longer_requires_a_gradient_gets_none,
    ),
    Guard(
        "arrays without a gradient",
        function._own,
        "ctx._non_differentiable += (output,)",
        "pass",
        of_function.test_an_array_can_be_marked_as_non_differentiable,
    ),
    Guard(
        "masks of one sum",
        replay._weighted_sums,
        "_weights()[: part.size]",
        "np.ones(part.size)",
        of_compose.test_a_replay_with_another_mask_of_the_same_sum_is_noticed,
    ),
    Guard(
        "generators without recording",
        mode._SetRecording.__call__,
        "if not inspect.isgeneratorfunction(function):",
        "if True:",
        of_mode.test_a_decorated_generator_runs_in_the_mode_and_its_caller_does_not,
    ),
    Guard(
        "arrays of models",
        ModelType.__call__,
        "locked(value.copy())",
        "value",
        of_models.test_a_model_does_not_share_the_arrays_that_it_is_given,
    ),
]
STARTS = [
    Guard(
        "NaN in a start",
        run.require_numbers,
        "if found is not None:",
        "if False:",
        of_numbers.test_one_nan_in_the_start_is_an_error,
    ),
    Guard(
        "NaN in a parameter",
        run.require_numbers,
        "if values.size and np.isnan(values.min()):",
        "if False:",
        of_inputs.test_the_message_says_what_is_wrong,
        ({"damping": np.nan}, "rollout, params.damping: all values are numbers; found params.damping = nan. "),
    ),
]
RUNS = [
    Guard(
        "chunks of zeros",
        storage.create_rows,
        ", **STORED",
        "",
        of_damage.test_each_chunk_of_zeros_is_damage,
    ),
    Guard(
        "missing segments",
        recorder.Recorder._require_segments,
        "if missing:",
        "if False:",
        of_damage.test_a_run_with_a_missing_segment_is_not_resumed_until_it_is_back,
    ),
    Guard(
        "segments without their run",
        recorder.require_no_run,
        "if not found and _holds_data(folder / SEGMENT_FOLDER):",
        "if False:",
        of_damage.test_segments_without_their_run_are_not_deleted,
        (False,),
    ),
    Guard(
        "files of the user",
        recorder.is_segment,
        r"\d{6,}\.h5",
        r".*",
        of_damage.test_files_of_the_user_among_the_segments_stay,
    ),
]
PROCESSES = [
    Guard(
        "errors that can be pickled",
        InputError.__reduce__,
        '_restore, (type(self), self.args, {**self.__dict__, "found": found})',
        "type(self), self.args",
        of_threads.test_errors_reach_another_process_as_they_are,
        ("ConfigError",),
    ),
    Guard(
        "errors with other arguments",
        Portable.__reduce__,
        "_restore, (type(self), self.args, self.__dict__)",
        "type(self), self.args",
        of_threads.test_errors_reach_another_process_as_they_are,
        ("AnomalyError",),
    ),
    Guard(
        "one thread",
        mode.take_over,
        "if other is not None and other is not threading.current_thread():",
        "if False:",
        of_threads.test_a_second_thread_is_refused_while_the_first_lives_and_recording_stays_on,
    ),
    Guard(
        "kernels in a child made by fork",
        runtime.refuse_fork,
        "if _Program.forked:",
        "if False:",
        of_threads.test_a_launch_after_a_fork_is_an_error_in_the_child,
        (1,),
        elsewhere=True,
    ),
    Guard(
        "first compilations in another thread",
        runtime.require_thread,
        "if threading.get_ident() != _Program.thread:",
        "if False:",
        of_threads.test_a_first_launch_in_another_thread_is_refused,
        elsewhere=True,
    ),
    Guard(
        "first lines of numbers",
        columns._is_numeric,
        "float(cell)",
        "int(cell)",
        of_columns.test_a_first_line_of_numbers_that_are_not_finite_is_no_line_of_names,
        ("inf",),
    ),
    Guard(
        "digit separators",
        columns._number,
        'if "_" in cell:',
        "if False:",
        of_columns.test_an_underscore_is_no_part_of_a_number,
    ),
]
GUARDS = [*WRITES, *COPIES, *SAVED, *GRAPH, *STARTS, *RUNS, *PROCESSES]


@pytest.mark.filterwarnings("ignore:.*Calling non-")
@pytest.mark.parametrize("guard", GUARDS, ids=[guard.what for guard in GUARDS])
def test_a_broken_guard_is_noticed(guard: Guard, tmp_path: Path) -> None:
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    run_test(guard, tmp_path / "whole")
    assert is_noticed(guard, tmp_path / "broken")
