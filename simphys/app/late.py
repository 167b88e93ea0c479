"""Modules that commands use, imported when a command first names one (`late.plot`): `simphys --help` answers at once.

A command names them after it has read its arguments, as a scene may ask for a kernel compiler, and a process has one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# ruff: noqa: F401 - others use what is imported here

if TYPE_CHECKING:
    from simphys import assess, plot, record, scenefile, view
    from simphys import report as page
    from simphys.app import (
        assessment,
        compare_runs,
        fit_check,
        health_report,
        identification,
        intervals,
        kernel_text,
        key_docs,
        machine,
        many_starts,
        mapping,
        next_experiment,
        report,
        samples,
        start_scene,
        step_graph,
        workflow,
    )
    from simphys.app.sweep import page as sweep_page
    from simphys.app.sweep import report as sweep_report
    from simphys.autograd import errors
    from simphys.diagnose import health
    from simphys.diagnose.check import scene as certificates
    from simphys.experiment import scene
    from simphys.runs import export

_HOMES = {
    "assess": "simphys.assess",
    "assessment": "simphys.app.assessment",
    "certificates": "simphys.diagnose.check.scene",
    "compare_runs": "simphys.app.compare_runs",
    "errors": "simphys.autograd.errors",
    "export": "simphys.runs.export",
    "fit_check": "simphys.app.fit_check",
    "health": "simphys.diagnose.health",
    "health_report": "simphys.app.health_report",
    "identification": "simphys.app.identification",
    "intervals": "simphys.app.intervals",
    "kernel_text": "simphys.app.kernel_text",
    "key_docs": "simphys.app.key_docs",
    "machine": "simphys.app.machine",
    "many_starts": "simphys.app.many_starts",
    "mapping": "simphys.app.mapping",
    "next_experiment": "simphys.app.next_experiment",
    "page": "simphys.report",
    "plot": "simphys.plot",
    "record": "simphys.record",
    "report": "simphys.app.report",
    "samples": "simphys.app.samples",
    "scene": "simphys.experiment.scene",
    "scenefile": "simphys.scenefile",
    "start_scene": "simphys.app.start_scene",
    "step_graph": "simphys.app.step_graph",
    "sweep_page": "simphys.app.sweep.page",
    "sweep_report": "simphys.app.sweep.report",
    "view": "simphys.view",
    "workflow": "simphys.app.workflow",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(_HOMES[name])
