"""The tests that `pytest --full` adds: what takes long, and notices little that a quicker test does not notice."""

from __future__ import annotations

import re

FULL_SUITE: dict[str, tuple[str, ...]] = {
    "certificates: one scene of most simulators stays; others use the same kernels, or compile long": (
        "test_certificates.py::test_the_gradient_of_a_scene_is_proven[*",
        "!test_certificates.py::*[charges/find_charges]",
        "!test_certificates.py::*[pendulum/swing_up]",
        "!test_certificates.py::*[smoke/taylor_green]",
        "!test_certificates.py::*[wave/drop]",
    ),
    "mutants: those of the operations and of springs stay": (
        "mutation/test_*",
        "!mutation/test_ops.py*",
        "!mutation/test_functions.py*",
        "!mutation/test_mass_spring.py*",
    ),
    "whole fits of scenes: a smaller fit with the same simulator stays": (
        "simulators/rigid/test_push.py::*",
        "simulators/rigid/test_walker_2d.py::*",
        "simulators/rigid/test_bounce.py::*",
        "simulators/wave/shallow/test_scene.py::test_the_fit_*",
        "simulators/mpm/test_runs.py::test_one_velocity_of_all_particles_is_found_and_drawn",
        "simulators/charges/test_scene.py::test_other_starts_lead_to_the_same_charges*",
        "simulators/charges/test_scene.py::test_the_fit_recovers_every_charge*",
        "simulators/smoke/test_scenes_smoke.py::*",
        "simulators/pendulum/test_double.py::test_an_inverted_release*",
        "simulators/elastic/test_physics.py::test_a_rayleigh_wave*",
        "app/test_first_steps.py::test_a_new_scene_of_any_simulator*",
        "!app/test_first_steps.py::*[mass_spring]",
        "simulators/pendulum/test_swing.py::test_starts_30_percent_off*",
        "experiment/test_shooting.py::test_the_truth_is_found_behind_19_lyapunov_times",
        "simulators/pendulum/test_swing_up.py::*",
        "experiment/test_members.py::test_a_medium_that_all_share_is_found_from_all",
        "app/test_workflow.py::test_a_resumed_fit_is_the_uninterrupted_one*",
        "!app/test_workflow.py::*[least_squares-*]",
        "app/test_workflow.py::test_standard_errors_are_the_scatter_of_fits_to_fresh_noise",
        "benchmarks/test_fields.py::test_the_inversion_lowers_its_misfit",
        "test_scenes.py::test_plain_least_squares_on_the_full_horizon*",
        "test_scenes.py::test_the_crawler_arrives_whole",
        "test_scenes.py::test_the_squeeze_finds_how_stiff_the_gel_is",
        "test_scenes.py::test_the_press_gives_the_clay_its_shape",
    ),
    "interrupted commands, names of files, sweeps of assessments: one of the first two stays": (
        "app/test_ctrl_c.py::test_ctrl_c_at_any_moment_*",
        "app/sweep/test_sweep.py::test_an_assessment_*",
        "!app/test_ctrl_c.py::*[0.05-optimize]",
        "app/test_hostile_disks.py::test_any_name_*",
        "!app/test_hostile_disks.py::*[name2]",
    ),
    "commands, reports and fits that take five seconds or more: others of the same kind stay": (
        "app/test_cli.py::test_report_writes_one_file_beside_the_run_or_elsewhere",
        "app/test_cli.py::test_a_certificate_is_saved_for_the_report_if_asked",
        "app/test_hostile_disks.py::test_each_command_that_writes_says_that_the_disk_is_full",
        "app/test_interrupted.py::test_a_fit_by_least_squares_on_a_growing_horizon_resumes_the_same",
        "app/test_interrupted.py::test_after_kill_9_*",
        "app/test_interrupted.py::test_a_full_disk_*",
        "app/test_mapping.py::test_fits_and_profiles_by_workers*",
        "app/test_workflow.py::test_a_fit_may_be_interrupted_again_and_again",
        "app/sweep/test_sweep.py::test_members_that_share_launches_*[run]",
        "autograd/test_settings.py::test_what_starts_the_compiler_again_*[taichi-*",
        "benchmarks/test_charges.py::test_loss_and_gradient_are_those_of_the_reference[f64*",
        "benchmarks/test_fields.py::test_loss_and_gradient_are_those_of_the_reference[w4-*",
        "benchmarks/test_robot.py::test_a_robot_walks_better*",
        "benchmarks/test_sweeps.py::test_it_prints_the_cost_of_each_part*",
        "diagnose/check/test_scene.py::test_a_scene_is_checked_with_its_own_loss*",
        "diagnose/health/test_health_chaos.py::test_rates_and_usable_horizons_*",
        "experiment/test_control.py::test_the_certificate_of_a_driven_scene_*",
        "experiment/test_control.py::test_a_check_in_f64_*",
        "diagnose/check/test_asked.py::test_a_device_that_loses_what_is_written_*",
        "diagnose/test_device.py::test_a_scene_is_compared_once_*",
        "experiment/test_settings_of_scenes.py::test_results_are_those_of_processes*[mass_spring/cloth]",
        "experiment/test_several.py::test_each_experiment_is_checked_measured_and_replayed",
        "optimize/test_posterior.py::test_the_posterior_of_a_kind_fit_*",
        "report/test_report.py::test_a_report_gives_the_verdict_*",
        "report/test_report.py::test_a_report_has_an_outline_*",
        "simulators/pendulum/test_double.py::test_the_growing_horizon_finds_*",
        "simulators/smoke/test_scene.py::test_viscosity_is_identified_*",
        "view/test_viewer.py::test_two_runs_side_by_side_*",
    ),
    "broken scenes: a few mutations of some scenes stay": (
        "benchmarks/test_fuzz.py::test_mutations_end_*",
        "!benchmarks/test_fuzz.py::*[pendulum/swing]",
        "!benchmarks/test_fuzz.py::*[mass_spring/air_track]",
    ),
    "reports in a browser: that of a fit stays": (
        "report/test_browser.py::*",
        "!report/test_browser.py::*air_track*",
    ),
    "more cases of a simulator: the first of each stays, unless it compiles for ten seconds": (
        "simulators/test_contract.py::*",
        "!simulators/test_contract.py::*, quick]",
        "simulators/test_devices.py::test_a_device_*",
        "!simulators/test_devices.py::*, quick]",
        "simulators/elastic/test_garvin.py::*",
        "simulators/elastic/test_physics.py::*[3]",
        "simulators/elastic/test_physics.py::*-3]",
        "simulators/elastic/test_physics.py::test_the_gradient_in_space*",
        "simulators/mpm/test_pieces.py::*",
        "experiment/test_batches.py::test_gradients_of_other_simulators_*",
        "!experiment/test_batches.py::*[heat/source]",
        "diagnose/check/test_scene.py::test_a_scene_is_checked_on_the_device*",
        "simulators/wave/test_memory.py::*[torus*",
        "simulators/wave/test_engine.py::*-alone]",
        "simulators/wave/test_engine.py::*[space*",
        "simulators/mpm/test_engine.py::*",
        "experiment/test_settings_of_scenes.py::test_scenes_in_both*",
        "!experiment/test_settings_of_scenes.py::test_scenes_in_both*[pendulum/swing]",
        "!experiment/test_settings_of_scenes.py::test_scenes_in_both*[wave/drop]",
        "experiment/test_settings_of_scenes.py::test_results_are_those_of_processes*[mass_spring/air_track]",
        "simulators/rigid/contacts/test_time_of_impact.py::test_derivatives_of_contacts_at_rest*[3]",
    ),
    "members, fits and motions whose kernels take seconds to compile: contracts and smaller ones stay": (
        "simulators/billiards/test_pocket.py::test_the_loss_falls_as_the_scene_says",
        "simulators/billiards/test_scene.py::test_a_fit_that_ends_with_overlapping_balls*",
        "simulators/mpm/test_physics.py::test_a_pulse_runs*[fixed_corotated]",
        "simulators/mpm/test_physics.py::test_water_in_a_tank*",
        "simulators/pendulum/test_physics.py::test_a_long_chain_moves_too",
        "simulators/rigid/test_tangents.py::test_tangents_of_a_batch*",
        "simulators/rigid/test_step.py::test_the_height_after_a_bounce*[0.9]",
        "simulators/wave/test_engine.py::*-batch]",
    ),
    "velocity Verlet, whose kernels are long: tests of single steps and of stored adjoints stay": (
        "simulators/mass_spring/test_reference.py::*[rollout-*-velocity_verlet]",
        "simulators/mass_spring/test_rollout.py::test_degenerate_systems*[velocity_verlet-*",
    ),
    "Jacobians entry by entry in space, where kernels take seconds to compile: those in the plane stay": (
        "simulators/rigid/solver/test_solve.py::*[3*",
        "simulators/rigid/test_step.py::*[3]",
        "simulators/rigid/motion/test_drift.py::*[3*",
        "simulators/rigid/joints/test_joints.py::*[3]",
        "simulators/rigid/solver/test_mobility.py::*[3]",
        "simulators/rigid/contacts/test_distances.py::*[3]",
        "simulators/rigid/contacts/test_ties.py::*[3]",
        "simulators/mpm/laws/test_*.py::test_every_element_of_the_jacobian_is_right[3]",
        "simulators/mpm/laws/test_*.py::test_crushed*3]",
        "simulators/mpm/laws/test_*.py::test_what_is_crushed*-3]",
        "simulators/mpm/laws/test_snow.py::test_every_element_of_the_jacobian_is_right*",
        "simulators/mpm/laws/test_drucker_prager.py::test_every_element_of_the_jacobian_is_right",
        "simulators/mpm/test_grid.py::test_every_element_of_the_jacobian_at_colliders_is_right*",
        "simulators/mpm/test_*2*.py::test_every_element_of_the_jacobian_is_right[3*",
        "simulators/smoke/test_advect.py::test_every_element_of_the_jacobians_is_right*",
        "!simulators/smoke/test_advect.py::test_every_element_of_the_jacobians_is_right[channel-semi_lagrangian]",
    ),
    "random steps: five stay": (
        *[f"rollout/test_random_steps.py::*[{digit}*]" for digit in range(1, 10)],
        *[f"!rollout/test_random_steps.py::*[{digit}]" for digit in range(2, 6)],
    ),
    "closed forms of single impacts: benchmarks/truth prints the whole table": (
        "simulators/rigid/test_truth.py::*",
        "benchmarks/test_truth.py::*",
        "simulators/rigid/contacts/test_time_of_impact.py::*[*in_space*",
        "simulators/mpm/test_physics.py::test_momentum_and_angular_momentum*",
        "simulators/mpm/test_stability.py::test_dense_material_is_unstable*",
        "simulators/mass_spring/test_stability.py::test_large_systems_agree_with_dense_eigenvalues*",
    ),
    "processes of their own, killed at many points, or measured in memory": (
        "app/sweep/test_sweep.py::test_a_cluster_gives_the_same_table*",
        "app/sweep/test_sweep.py::test_workers_that_are_killed_lose_no_member*",
        "rollout/test_memory.py::*",
        "autograd/test_long_graphs.py::test_a_chain_of_a_million_nodes*",
        "record/test_record_crash.py::test_a_kill_at_any_call_to_the_disk_is_survived",
        "test_long_runs.py::*",
        "docs/test_own_package.py::test_an_installed_package*",
        "test_packaging.py::test_a_type_checker_sees_the_installed_types",
        "benchmarks/test_rollout.py::*",
        "benchmarks/test_graph.py::*",
        "simulators/mass_spring/test_lattice_workload.py::*",
        "test_scenes.py::test_a_script_runs_and_leaves_its_run_and_pictures*",
        "test_scenes.py::test_the_shipped_recordings_of_material_points*",
    ),
}
"""Names of tests relative to tests/ by the reason why they may wait for `--full`; * is any text, ! an exception."""


def pattern_of(name: str) -> re.Pattern[str]:
    """Compile a name with its wildcards."""
    return re.compile(".*".join(map(re.escape, name.split("*"))))


_NAMES = [name for names in FULL_SUITE.values() for name in names]
_LATER = [pattern_of(name) for name in _NAMES if not name.startswith("!")]
_EXCEPT = [pattern_of(name[1:]) for name in _NAMES if name.startswith("!")]


def belongs_to_full_suite(nodeid: str) -> bool:
    """Return True if only the whole proof runs the test of this node id."""
    name = nodeid.removeprefix("tests/")
    return any(each.fullmatch(name) for each in _LATER) and not any(each.fullmatch(name) for each in _EXCEPT)
