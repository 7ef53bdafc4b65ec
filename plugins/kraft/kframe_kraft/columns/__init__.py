"""Partition records as columns: a row for each record, and indexes of the UUIDs in them."""
