"""Commands of plugins: the same options, outputs, progress and exit codes as kframe's own commands."""

from __future__ import annotations

from kframe.cli.admin import open_administration
from kframe.cli.execution import execution_limit_options
from kframe.cli.exits import check_reader
from kframe.cli.inputs import SOURCE, NamedPath, await_file, awaited_stream, is_url
from kframe.cli.live import COMMAND_CONFIG, CONFIG_OPTION, awaited, client_properties, opened_cluster
from kframe.cli.numbers import IDS, DecimalNumber, WholeNumber, broker_ids, limit_option
from kframe.cli.options import collected
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
from kframe.cli.plan_generate import weights_option
from kframe.cli.plan_goals import chosen_terms, goal_options, term_options
from kframe.cli.plan_restarts import restart_options
from kframe.cli.plan_stage import limit_options
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.progress import progress
from kframe.cli.reading import SnapshotReading, reading_options
from kframe.cli.spark_fleet import check_racks, read_racks
from kframe.cli.stop_signal import StopSignal
from kframe.cli.topics import PATTERNS, TOPICS, topic_names
from kframe.cli.whatif import OPERATIONS as WHATIF_OPERATIONS

__all__ = [
    "COMMAND_CONFIG",
    "CONFIG_OPTION",
    "IDS",
    "PATTERNS",
    "SOURCE",
    "TOPICS",
    "WHATIF_OPERATIONS",
    "BadInput",
    "DecimalNumber",
    "NamedPath",
    "OutputTable",
    "PluginSettings",
    "Record",
    "ReportingGroup",
    "SnapshotReading",
    "StopSignal",
    "WholeNumber",
    "await_file",
    "awaited",
    "awaited_stream",
    "broker_ids",
    "check_racks",
    "check_reader",
    "chosen_terms",
    "client_properties",
    "collected",
    "emit_heading",
    "emit_record",
    "emit_rows",
    "execution_limit_options",
    "goal_options",
    "is_url",
    "limit_option",
    "limit_options",
    "open_administration",
    "opened_cluster",
    "output_option",
    "plugin_options",
    "progress",
    "read_racks",
    "reading_options",
    "restart_options",
    "term_options",
    "topic_names",
    "weights_option",
]
