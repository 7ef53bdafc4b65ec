"""The plan of a run: faults, operator actions and client actions."""
