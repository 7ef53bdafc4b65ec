"""Scenario and trace files: a cluster, the events in it, and the actions of a controller."""
