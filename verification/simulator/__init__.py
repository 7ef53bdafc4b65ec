"""Fixtures of the simulator's own tests."""
