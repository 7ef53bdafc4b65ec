"""What a server implements (``Server``), the calls of the controller that it serves, and filters of ACLs."""

from __future__ import annotations

from kframe.api.controller import Controller, IsrProposal, Server
from kframe.model.acls import AclFilter, PatternType
from kframe.model.admin import ConfigChange, ConfigOperation, FeatureUpdate, NewPartitions, NewTopic

__all__ = [
    "AclFilter",
    "ConfigChange",
    "ConfigOperation",
    "Controller",
    "FeatureUpdate",
    "IsrProposal",
    "NewPartitions",
    "NewTopic",
    "PatternType",
    "Server",
]
