"""Comparison of derivatives and motions with closed forms and published tables: python -m benchmarks.truth."""
