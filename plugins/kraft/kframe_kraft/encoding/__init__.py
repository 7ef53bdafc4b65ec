"""Metadata and decisions of a controller as record batches: whole snapshots, and changes that stay in columns."""
