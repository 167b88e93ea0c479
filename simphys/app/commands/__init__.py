"""The commands of `simphys`, by subject; cli.py registers them."""
