"""Sweeps of all failures, and fleets of clusters on Spark."""
