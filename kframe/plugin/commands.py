"""Commands of plugins: the same options, outputs, progress and exit codes as kframe's own commands."""

from __future__ import annotations

from kframe.cli.exits import check_reader
from kframe.cli.live import COMMAND_CONFIG, awaited, client_properties
from kframe.cli.output import (
    BadInput,
    OutputTable,
    Record,
    ReportingGroup,
    emit_heading,
    emit_record,
    emit_rows,
    output_option,
)
from kframe.cli.progress import progress
from kframe.cli.stop_signal import StopSignal

__all__ = [
    "COMMAND_CONFIG",
    "BadInput",
    "OutputTable",
    "Record",
    "ReportingGroup",
    "StopSignal",
    "awaited",
    "check_reader",
    "client_properties",
    "emit_heading",
    "emit_record",
    "emit_rows",
    "output_option",
    "progress",
]
