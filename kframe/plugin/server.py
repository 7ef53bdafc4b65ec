"""What a server implements (``Server``), the requests that it passes on, ACLs, quotas, and names of metrics."""

from __future__ import annotations

from kframe.core.mutation_quotas import (
    MUTATION_RATE,
    UNLIMITED,
    MutationQuota,
    MutationQuotas,
    QuotaEntity,
    entities_of,
)
from kframe.model.acls import CLUSTER, WILDCARD, AclFilter, AclOperation, AclResourceType, PatternType, Permission
from kframe.model.admin import ConfigChange, ConfigOperation, FeatureUpdate, NewPartitions, NewTopic
from kframe.model.authorization import WILDCARD_PRINCIPAL, AccessControlEntry, applies, is_allowed, patterns_of
from kframe.model.delegation_tokens import token_hmac
from kframe.ports.server import Server
from kframe.runtime.exposition import labelled, summary
from kframe.runtime.metrics import TIMERS

__all__ = [
    "CLUSTER",
    "MUTATION_RATE",
    "TIMERS",
    "UNLIMITED",
    "WILDCARD",
    "WILDCARD_PRINCIPAL",
    "AccessControlEntry",
    "AclFilter",
    "AclOperation",
    "AclResourceType",
    "ConfigChange",
    "ConfigOperation",
    "FeatureUpdate",
    "MutationQuota",
    "MutationQuotas",
    "NewPartitions",
    "NewTopic",
    "PatternType",
    "Permission",
    "QuotaEntity",
    "Server",
    "applies",
    "entities_of",
    "is_allowed",
    "labelled",
    "patterns_of",
    "summary",
    "token_hmac",
]
