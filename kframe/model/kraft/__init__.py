"""Metadata of a KRaft cluster: the records of its metadata log, as plain data."""
