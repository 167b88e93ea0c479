"""The simulators, a folder each; none uses another."""
