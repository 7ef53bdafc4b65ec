"""Scenario and trace files: a cluster, what happens to it, and what a controller made of it."""
