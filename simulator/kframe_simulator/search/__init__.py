"""Exhaustive search of the states of a small cluster."""
