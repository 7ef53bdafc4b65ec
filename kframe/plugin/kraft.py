"""The metadata log of a KRaft cluster: its records (``records``), control records and reserved directory ids."""

from __future__ import annotations

from kframe.model.kraft import control, directory_ids, records

__all__ = ["control", "directory_ids", "records"]
