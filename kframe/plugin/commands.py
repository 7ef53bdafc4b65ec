"""Commands of plugins: the same options, outputs, progress and exit codes as kframe's own commands."""

from __future__ import annotations

from kframe.cli.exits import check_reader
from kframe.cli.inputs import NamedPath, await_file, awaited_stream
from kframe.cli.live import COMMAND_CONFIG, awaited, client_properties
from kframe.cli.numbers import IDS, WholeNumber, broker_ids, limit_option
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
from kframe.cli.topics import PATTERNS, TOPICS, topic_names

__all__ = [
    "COMMAND_CONFIG",
    "IDS",
    "PATTERNS",
    "TOPICS",
    "BadInput",
    "NamedPath",
    "OutputTable",
    "Record",
    "ReportingGroup",
    "StopSignal",
    "WholeNumber",
    "await_file",
    "awaited",
    "awaited_stream",
    "broker_ids",
    "check_reader",
    "client_properties",
    "emit_heading",
    "emit_record",
    "emit_rows",
    "limit_option",
    "output_option",
    "progress",
    "topic_names",
]
