"""The compiled kernels of the plugin."""

from __future__ import annotations

from kframe_kafka_wire._responses import scan_response

__all__ = ["scan_response"]
