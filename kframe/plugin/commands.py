"""Commands of plugins: the same options, outputs, progress and exit codes as kframe's own commands."""

from __future__ import annotations

from kframe.cli.live import COMMAND_CONFIG, client_properties
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

__all__ = [
    "COMMAND_CONFIG",
    "BadInput",
    "OutputTable",
    "Record",
    "ReportingGroup",
    "client_properties",
    "emit_heading",
    "emit_record",
    "emit_rows",
    "output_option",
    "progress",
]
