"""What a server implements (``Server``), and the calls of the controller that it serves."""

from __future__ import annotations

from kframe.api.controller import Controller, IsrProposal
from kframe.api.serving import Server
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
