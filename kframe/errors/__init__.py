"""Errors of kframe and error codes of Kafka."""

from kframe.errors.codes import ErrorCode
from kframe.errors.exceptions import (
    RESIGNING,
    BrokenInvariant,
    ConfigError,
    ControllerFenced,
    InputError,
    KframeError,
    LogError,
    PluginError,
    RecordError,
    ScenarioError,
    SelectorFault,
    ShapeError,
    SnapshotError,
    SolverError,
    StoreError,
    ZnodeError,
)

__all__ = [
    "RESIGNING",
    "BrokenInvariant",
    "ConfigError",
    "ControllerFenced",
    "ErrorCode",
    "InputError",
    "KframeError",
    "LogError",
    "PluginError",
    "RecordError",
    "ScenarioError",
    "SelectorFault",
    "ShapeError",
    "SnapshotError",
    "SolverError",
    "StoreError",
    "ZnodeError",
]
