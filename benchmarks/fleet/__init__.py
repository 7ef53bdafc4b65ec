"""Fleets of clusters on Spark."""
