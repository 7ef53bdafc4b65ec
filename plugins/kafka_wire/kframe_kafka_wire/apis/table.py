"""The handler of each API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe_kafka_wire.apis import acls, brokers, configs, internal, metadata, partitions, quotas, tokens, topics, users
from kframe_kafka_wire.apis.non_controller_apis import NON_CONTROLLER_APIS, Handler
from kframe_kafka_wire.apis.versions import API_VERSIONS, METADATA

#: The APIs with a handler of their own.
OWN: Final[Mapping[int, Handler]] = {
    METADATA: metadata.metadata,
    4: brokers.stale_controller,
    5: brokers.stale_controller,
    6: brokers.stale_controller,
    7: brokers.controlled_shutdown,
    10: internal.find_coordinator,
    API_VERSIONS: metadata.api_versions,
    19: topics.create_topics,
    20: topics.delete_topics,
    22: brokers.init_producer_id,
    29: acls.describe_acls,
    30: acls.create_acls,
    31: acls.delete_acls,
    32: configs.describe_configs,
    33: configs.alter_configs,
    37: topics.create_partitions,
    38: tokens.create_token,
    39: tokens.renew_token,
    40: tokens.expire_token,
    41: tokens.describe_tokens,
    43: partitions.elect_leaders,
    44: configs.incremental_alter_configs,
    45: partitions.alter_reassignments,
    46: partitions.list_reassignments,
    48: quotas.describe_quotas,
    49: quotas.alter_quotas,
    50: users.describe_credentials,
    51: users.alter_credentials,
    56: partitions.alter_partition,
    57: brokers.update_features,
    60: metadata.describe_cluster,
    67: brokers.allocate_producer_ids,
}


def handler_of(api_key: int) -> Handler:
    """The handler of an offered API."""
    return OWN[api_key] if api_key in OWN else NON_CONTROLLER_APIS[api_key]
