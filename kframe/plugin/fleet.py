"""Fleets on Parquet, as ``kframe spark ingest`` writes them. Reading a cluster of one needs pyarrow, and no Spark."""

from __future__ import annotations

from kframe.snapshot.rack_map import FleetRackMap
from kframe.spark.fleet import ClusterRecord, is_fleet, records
from kframe.spark.inputs import ClusterInput

__all__ = ["ClusterInput", "ClusterRecord", "FleetRackMap", "is_fleet", "records"]
