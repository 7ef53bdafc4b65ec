"""What a server implements (``Server``), and the calls of the controller that it serves."""

from __future__ import annotations

from kframe.api.controller import Controller, IsrProposal, Server
from kframe.model.admin import ConfigChange, ConfigOperation, FeatureUpdate, NewPartitions, NewTopic

__all__ = [
    "ConfigChange",
    "ConfigOperation",
    "Controller",
    "FeatureUpdate",
    "IsrProposal",
    "NewPartitions",
    "NewTopic",
    "Server",
]
