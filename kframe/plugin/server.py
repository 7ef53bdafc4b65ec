"""What a server implements (``Server``), the calls of the controller that it serves, ACL filters, quotas, metrics."""

from __future__ import annotations

from kframe.core.operations.mutation_quotas import (
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
from kframe.runtime.exposition import labelled, summary

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
    "labelled",
    "summary",
]
