"""What a server implements (``Server``), the calls of the controller that it serves, filters of ACLs, and quotas."""

from __future__ import annotations

from kframe.core.mutation_quotas import (
    MUTATION_RATE,
    UNLIMITED,
    MutationQuota,
    MutationQuotas,
    QuotaEntity,
    entities_of,
)
from kframe.model.acls import AclFilter, PatternType
from kframe.model.admin import ConfigChange, ConfigOperation, FeatureUpdate, NewPartitions, NewTopic
from kframe.ports.server import Server
from kframe.runtime.controller import Controller, IsrProposal

__all__ = [
    "MUTATION_RATE",
    "UNLIMITED",
    "AclFilter",
    "ConfigChange",
    "ConfigOperation",
    "Controller",
    "FeatureUpdate",
    "IsrProposal",
    "MutationQuota",
    "MutationQuotas",
    "NewPartitions",
    "NewTopic",
    "PatternType",
    "QuotaEntity",
    "Server",
    "entities_of",
]
