"""Replay of ACLs, SCRAM credentials, delegation tokens and client quotas."""

from __future__ import annotations

from kframe.errors import InputError
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)


def replay_acl(metadata: ClusterMetadata, record: AccessControlEntryRecord, offset: int) -> None:
    """Add an ACL."""
    metadata.acls[record.id] = record


def replay_remove_acl(metadata: ClusterMetadata, record: RemoveAccessControlEntryRecord, offset: int) -> None:
    """Remove an ACL."""
    if metadata.acls.pop(record.id, None) is None:
        raise InputError("RemoveAccessControlEntryRecord.id", str(record.id), "an ACL that exists")


def replay_scram(metadata: ClusterMetadata, record: UserScramCredentialRecord, offset: int) -> None:
    """Set a SCRAM credential."""
    metadata.scram[record.name, record.mechanism] = record


def replay_remove_scram(metadata: ClusterMetadata, record: RemoveUserScramCredentialRecord, offset: int) -> None:
    """Remove a SCRAM credential."""
    if metadata.scram.pop((record.name, record.mechanism), None) is None:
        raise InputError("RemoveUserScramCredentialRecord", f"user {record.name}", "a credential that exists")


def replay_token(metadata: ClusterMetadata, record: DelegationTokenRecord, offset: int) -> None:
    """Set a delegation token."""
    metadata.tokens[record.token_id] = record


def replay_remove_token(metadata: ClusterMetadata, record: RemoveDelegationTokenRecord, offset: int) -> None:
    """Remove a delegation token, if it exists."""
    metadata.tokens.pop(record.token_id, None)


def replay_client_quota(metadata: ClusterMetadata, record: ClientQuotaRecord, offset: int) -> None:
    """Set or remove a quota of an entity."""
    entity = tuple(sorted((data.entity_type, data.entity_name) for data in record.entity))
    quotas = metadata.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if not quotas:
        del metadata.quotas[entity]
