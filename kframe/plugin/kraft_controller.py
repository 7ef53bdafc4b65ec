"""The rules of a KRaft controller, for plugins that lead a quorum. Each decides an event in a ``KraftContext``."""

from __future__ import annotations

from kframe.core.kraft import controller_apis
from kframe.core.kraft.brokers import broker_events, producer_ids, registration
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.configuration import configs
from kframe.core.kraft.configuration.broker_keys import BROKER_CONFIG_KEYS, type_problem
from kframe.core.kraft.configuration.descriptions import BROKER_LOGGER, DescribedConfig, describe_configs
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import PartitionResult, RequestRefused
from kframe.core.kraft.features import feature_updates
from kframe.core.kraft.features.activation import activate
from kframe.core.kraft.random_source import RandomSource
from kframe.core.kraft.replication import alter_partition as isr_proposals
from kframe.core.kraft.replication import directories as directory_assignments
from kframe.core.kraft.replication import elections, reassignment
from kframe.core.kraft.replication.election_counts import ElectionCounts
from kframe.core.kraft.replication.selectors import SelectorSelection
from kframe.core.kraft.security import acls, mutation_quotas, scram, tokens
from kframe.core.kraft.security import quotas as client_quotas
from kframe.core.kraft.topics import topic_requests
from kframe.model.kraft.ids import KraftElection, MetadataLevel, ResourceType
from kframe.model.kraft.levels import PRODUCTION_LEVEL, default_levels, level_name, parse_level
from kframe.model.kraft.releases import LATEST_RELEASE, Release, supported_features

__all__ = [
    "BROKER_CONFIG_KEYS",
    "BROKER_LOGGER",
    "LATEST_RELEASE",
    "PRODUCTION_LEVEL",
    "DescribedConfig",
    "ElectionCounts",
    "Heartbeats",
    "KraftContext",
    "KraftElection",
    "KraftSettings",
    "MetadataLevel",
    "PartitionResult",
    "RandomSource",
    "Release",
    "RequestRefused",
    "ResourceType",
    "SelectorSelection",
    "acls",
    "activate",
    "broker_events",
    "client_quotas",
    "configs",
    "controller_apis",
    "default_levels",
    "describe_configs",
    "directory_assignments",
    "elections",
    "feature_updates",
    "isr_proposals",
    "level_name",
    "mutation_quotas",
    "parse_level",
    "producer_ids",
    "reassignment",
    "registration",
    "scram",
    "supported_features",
    "tokens",
    "topic_requests",
    "type_problem",
]
