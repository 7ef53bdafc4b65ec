"""Requests and storage changes of administrators: topics, reassignments, elections, settings, features."""
