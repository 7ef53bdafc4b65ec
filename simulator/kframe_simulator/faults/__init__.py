"""The plan of a run: faults, and what operators do, as data and as functions."""
