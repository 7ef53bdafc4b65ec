"""Errors of kframe and error codes of Kafka, and how a controller reacts to each failure."""

from kframe.errors.codes import ErrorCode
from kframe.errors.consequences import CONSEQUENCE, Consequence
from kframe.errors.exceptions import (
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
    StoreError,
    ZnodeError,
)

__all__ = [
    "CONSEQUENCE",
    "BrokenInvariant",
    "ConfigError",
    "Consequence",
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
    "StoreError",
    "ZnodeError",
]
