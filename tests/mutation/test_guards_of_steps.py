"""Each guard of steps and sub-steps against what would be silently wrong is needed: its test fails without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simphys.autograd.kernels import generated
from simphys.numerics import dependencies, element, in_python, names, outside, vanishing, writes
from simphys.rollout.engine import memory, nested_engine, program_of, prologue
from simphys.simulators.billiards import placement
from simphys.simulators.rigid import start_checks
from simphys.substep import draft, expressions, fit, function, lanes, launch, pattern, program, relation, scope
from simphys.substep.edges import Edges
from simphys.substep.operation import Operation
from simphys.substep.operation import _apart as apart
from simphys.substep.per_element import PerElement
from simphys.substep.read_step import _require_names

from ..numerics import test_reading_of_sources as of_sources
from ..rollout import test_lanes as of_lanes
from ..rollout import test_names_from_outside as of_names
from ..rollout import test_steps_of_users as of_steps
from ..simulators.billiards import test_model as of_balls
from ..simulators.rigid import test_value_checks as of_values
from ..substep import test_arrays_that_do_not_fit as of_arrays
from ..substep import test_launch as of_launches
from ..substep import test_shapes_of_patterns as of_shapes
from .guards import Guard, is_noticed, run_test

SOURCES = [
    Guard(
        "captured numbers",
        vanishing.find_vanishing,
        "{name for name, _ in assignments}",
        "{node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}",
        of_sources.test_a_captured_number_does_not_vanish_and_a_zero_does,
    ),
    Guard(
        "what calls write",
        writes._targets,
        "if target is None:",
        "if True:\n        return []\n    if target is None:",
        of_sources.test_a_result_vanishes_only_with_all_that_it_is_made_of,
        (of_sources.helped,),
    ),
    Guard(
        "what decides on a break",
        dependencies._conditions_of_jumps,
        "if any(map(_is_jump, ast.walk(part)))",
        "if False",
        of_sources.test_a_result_depends_on_what_decides_how_far_a_function_runs,
        (of_sources.breaks,),
    ),
]
STEPS = [
    Guard(
        "names from outside a step",
        program.Program.is_current,
        "if self.names is not None and not self.names.is_same:",
        "if False:",
        of_names.test_a_sub_step_of_another_meaning_is_recorded,
    ),
    Guard(
        "names of functions that a step calls",
        outside._find_names,
        "not in LIBRARIES:",
        "in LIBRARIES:",
        of_names.test_modes_agree_after_a_number_from_outside_has_changed,
        ("a number that a function reads",),
    ),
    Guard(
        "captured numbers that change",
        scope.Scope.function,
        "if rule.outside is not None:",
        "if False:",
        of_names.test_a_captured_number_that_has_changed_is_refused,
        (of_names.make_captured, "nested", True),
    ),
    Guard(
        "captured numbers that change before a rollout",
        program.Program.is_current,
        "if not all([captured.is_same for captured in self.captured]):",
        "if False:",
        of_names.test_a_captured_number_that_has_changed_is_refused,
        (of_names.make_calling, "fused", False),
    ),
    Guard(
        "fields of parameters alone",
        prologue.split_prologue,
        " and state.isdisjoint(op.outputs)",
        "",
        of_steps.test_a_field_of_the_new_state_may_depend_on_parameters_alone,
        ("a parameter",),
    ),
    Guard(
        "what is cleared after it was read",
        lanes._divide,
        "elif taken.isdisjoint(action.writes) and written.isdisjoint(action.reads):",
        "elif True:",
        of_lanes.test_the_tangent_of_a_sum_over_edges_that_nodes_spread_to_a_grid,
    ),
    Guard(
        "one array at the loop's index and elsewhere",
        function._apart,
        "source.kind in ELSEWHERE",
        "False",
        of_steps.test_a_sub_step_may_take_an_array_element_by_element_and_by_an_index,
    ),
    Guard(
        "index sets of two sizes",
        draft.Draft.domain,
        "!= (size, grid)",
        "is None",
        of_steps.test_index_sets_of_one_name_may_have_two_sizes,
    ),
    Guard(
        "one name in state and parameters",
        _require_names,
        "if other is not None:",
        "if False:",
        of_steps.test_fields_named_like_tangents_or_adjoints_or_twice_are_refused,
        ("x", "y"),
    ),
    Guard(
        "names of tangents",
        _require_names,
        "if other is not None:",
        "if False:",
        of_steps.test_fields_named_like_tangents_or_adjoints_or_twice_are_refused,
        ("k", "dx"),
    ),
    Guard(
        "names of arguments",
        memory.require_names,
        "name in others or name in COUNTS",
        "False",
        of_steps.test_fields_named_like_arguments_of_the_engine_are_refused_unless_they_are_right,
        ("rows",),
    ),
    Guard(
        "Tensors from outside",
        function._as_input,
        "if given.requires_grad:",
        "if False:",
        of_steps.test_a_tensor_from_outside_that_requires_a_gradient_is_refused,
    ),
    Guard(
        "Tensors from outside a step with Functions",
        nested_engine._require_known_leaves,
        "id(variable) not in known",
        "False",
        of_steps.test_so_it_is_where_the_step_is_not_declared,
    ),
    Guard(
        "writes to Tensors from outside",
        program_of,
        " or not table[key].program.is_current",
        "",
        of_steps.test_a_tensor_from_outside_that_is_written_counts_from_the_next_rollout_on,
    ),
]
ARRAYS = [
    Guard(
        "adjoints in the memory of others",
        apart,
        "values.copy()",
        "values",
        of_steps.test_adjoints_of_an_operation_may_be_the_array_that_it_got,
        of_steps.ALIASES[0],
    ),
    Guard(
        "shapes of operations",
        Operation._require_arrays,
        " or size != shape",
        "",
        of_steps.test_an_operation_returns_arrays_of_its_shapes,
        (of_steps.good, lambda model, adj_r: (adj_r[:1], None), "the adjoint of x", "fused"),
    ),
    Guard(
        "numbers of operations",
        Operation._require_arrays,
        'kind.kind != "f" or ',
        "",
        of_steps.test_an_operation_returns_arrays_of_its_shapes,
        (lambda model, x, k: x + 1j, of_steps.adj_good, "found complex128", "fused"),
    ),
    Guard(
        "ends that name no node",
        relation.read_relation,
        "(-1 if gaps else 0)",
        "-1",
        of_arrays.test_an_edge_joins_two_nodes_that_exist,
        ([[-1, 0], [1, 2]], "lies in 0"),
        writes_beyond=True,
    ),
    Guard(
        "edges from a node to itself",
        Edges.make_op,
        "if loops.size:",
        "if False:",
        of_arrays.test_an_edge_joins_two_nodes_that_exist,
        ([[0, 1], [2, 2]], "joins two different nodes"),
    ),
    Guard(
        "arrays of two lengths by one index",
        PerElement.make_op,
        "!= length",
        "== -1",
        of_arrays.test_arrays_gathered_by_one_index_have_one_length,
    ),
    Guard(
        "constants of a wrong length",
        pattern.Pattern.require_constants,
        "value.shape[0] != domain.size",
        "False",
        of_arrays.test_a_constant_array_has_an_entry_for_each_element,
        (3, "an entry for each"),
    ),
    Guard(
        "constants that could be vectors",
        fit._require_distinct_constants,
        "op.domain.size > 1",
        "False",
        of_arrays.test_a_constant_array_has_an_entry_for_each_element,
        (2, "as long as both"),
    ),
]
FITS = [
    Guard(
        "shapes of what element functions return",
        fit.require_fit,
        "use.require_fit()",
        "pass",
        of_shapes.test_a_vector_is_no_result_where_a_number_is_declared,
        ("faces",),
        writes_beyond=True,
    ),
    Guard(
        "shapes of tangents",
        fit.Use.require_fit,
        "if tangent is not None:",
        "if False:",
        of_shapes.test_a_tangent_has_the_shape_of_the_result,
    ),
    Guard(
        "functions that others call",
        in_python._replace,
        "is_function and _read(plain) is not None",
        "False",
        of_shapes.test_so_it_is_where_python_needs_other_functions,
        writes_beyond=True,
    ),
    Guard(
        "functions with a `while`",
        in_python._code_that_ends,
        "definition = _Once()",
        "raise ValueError\n    definition = _Once()",
        of_shapes.test_so_it_is_with_a_loop_that_would_not_end,
        writes_beyond=True,
    ),
    Guard(
        "casts of the compiler",
        in_python._replace,
        "value is ti",
        "False",
        of_shapes.test_so_it_is_where_python_needs_other_functions,
        writes_beyond=True,
    ),
    Guard(
        "errors of the compiler",
        generated.GeneratedKernel._optimization,
        "_explaining(super()._optimization(), self.name)",
        "super(GeneratedKernel, self)._optimization()",
        of_shapes.test_operands_that_do_not_fit_are_named_with_their_place,
        (of_shapes.ones(3, 1),),
    ),
    Guard(
        "names that stand for nothing",
        names.find_undefined,
        "node.id not in known",
        "False",
        of_shapes.test_a_name_that_stands_for_nothing_is_refused_with_its_line,
        (of_shapes.make_root, "square_root"),
    ),
    Guard(
        "attributes that modules do not have",
        names.find_undefined,
        "not hasattr(owner, node.attr)",
        "False",
        of_shapes.test_a_name_that_stands_for_nothing_is_refused_with_its_line,
        (of_shapes.make_rule, "np.missing"),
    ),
    Guard(
        "names of functions that others call",
        element.Rule._list_called,
        "isinstance(made, Element)",
        "False",
        of_shapes.test_a_name_that_stands_for_nothing_is_refused_with_its_line,
        (of_shapes.make_call_of_root, "square_root"),
    ),
    Guard(
        "entries that cells share",
        PerElement.view,
        "if not 0 <= int(by) < view.domain.size:",
        "if False:",
        of_shapes.test_a_shared_entry_of_cells_is_one_of_the_array,
        writes_beyond=True,
    ),
    Guard(
        "arrays of edges",
        fit._require_lengths,
        "or value.size == view.domain.size * view.components",
        "or True",
        of_arrays.test_an_array_has_an_entry_for_each_edge,
        (1,),
        writes_beyond=True,
    ),
    Guard(
        "marks of particles",
        fit._require_lengths,
        "or value.size == view.domain.size * view.components",
        "or True",
        of_arrays.test_a_mark_has_an_entry_for_each_particle,
        writes_beyond=True,
    ),
    Guard(
        "index arrays that were replaced",
        relation.cached,
        "if not isinstance(model, Model):",
        "if False:",
        of_arrays.test_index_arrays_of_what_is_no_model_may_be_replaced,
        writes_beyond=True,
    ),
    Guard(
        "names of any words",
        expressions.identifier,
        're.sub(r"^(?=\\d)|\\W", "_", name)',
        "name",
        of_steps.test_names_of_arrays_and_index_sets_are_any_words,
    ),
    Guard(
        "index sets of two sizes in a launch",
        launch._isolate,
        "Draft({}).name_domains(isolated)",
        "pass",
        of_launches.test_index_sets_of_one_name_may_have_two_sizes_in_a_launch,
        writes_beyond=True,
    ),
]
STARTS = [
    Guard(
        "balls that overlap",
        placement.check_start,
        "if found:",
        "if False:",
        of_balls.test_balls_start_apart_and_on_the_table,
        ([[0.3, 0.5], [0.35, 0.5]], "overlap", "fused"),
    ),
    Guard(
        "values that tear joints",
        start_checks._find_torn,
        "if is_apart or angle > ROUNDING:",
        "if False:",
        of_values.test_values_that_tear_a_joint_are_reported,
        (of_values.SLIDE, {"orientation": of_values.at([0, 0], value=0.5)}, "turned by 0.5 rad"),
    ),
    Guard(
        "values that bodies do not take",
        start_checks.Start._check_values,
        "if self.started:",
        "if False:",
        of_values.test_values_that_bodies_on_started_joints_would_not_take_are_reported,
        ("position", "joint_start"),
    ),
]
GUARDS = [*SOURCES, *STEPS, *ARRAYS, *FITS, *STARTS]


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.what for guard in GUARDS])
def test_a_broken_guard_is_noticed(guard: Guard, tmp_path: Path) -> None:
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    run_test(guard, tmp_path / "whole")
    assert is_noticed(guard, tmp_path / "broken")
