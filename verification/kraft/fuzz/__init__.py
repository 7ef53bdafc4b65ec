"""Fuzzing of the decoders of records, control records and batches.

``python -m verification.kraft.fuzz`` runs it.
"""
