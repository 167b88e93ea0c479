"""Reports of runs: one HTML file each, with tables, pictures and a replay, that opens anywhere without a network."""

from simphys.report.build import make_page, write_report

__all__ = ["make_page", "write_report"]
