"""The compiled kernels of the plugin."""

from __future__ import annotations

from kframe_kafka_wire._answers import scan_answer

__all__ = ["scan_answer"]
