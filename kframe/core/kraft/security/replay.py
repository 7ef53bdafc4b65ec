"""Replay of ACLs, SCRAM credentials, delegation tokens and client quotas."""

from __future__ import annotations

from kframe.errors import InputError
from kframe.model.kraft.metadata import AclPattern, ClusterMetadata
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
    """Add an ACL, or replace the one with its id."""
    replaced = metadata.acls.get(record.id)
    if replaced is not None:
        _remove_from_pattern(metadata, replaced)
    metadata.acls[record.id] = record
    metadata.acls_by_pattern.setdefault(_pattern(record), {})[record.id] = record


def replay_remove_acl(metadata: ClusterMetadata, record: RemoveAccessControlEntryRecord, offset: int) -> None:
    """Remove an ACL."""
    removed = metadata.acls.pop(record.id, None)
    if removed is None:
        raise InputError("RemoveAccessControlEntryRecord.id", str(record.id), "an ACL that exists")
    _remove_from_pattern(metadata, removed)


def _remove_from_pattern(metadata: ClusterMetadata, record: AccessControlEntryRecord) -> None:
    entries = metadata.acls_by_pattern[_pattern(record)]
    del entries[record.id]
    if not entries:
        del metadata.acls_by_pattern[_pattern(record)]


def _pattern(record: AccessControlEntryRecord) -> AclPattern:
    return record.resource_type, record.pattern_type, record.resource_name


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
