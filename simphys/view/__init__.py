"""Live replay of runs in the browser, by viser (extra `view`); it follows a run while it is being written."""

from simphys.view.server import Viewer

__all__ = ["Viewer"]
