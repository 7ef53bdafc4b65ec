"""Fuzzing of the decoders of records, control records and batches.

``python -m kframe_kraft.testing.fuzz`` runs it.
"""
