"""Reassignment plans: read and written, checked, generated, staged and executed."""
