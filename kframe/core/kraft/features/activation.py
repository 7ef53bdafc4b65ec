"""The records with which a leader becomes the active controller (Kafka 4.4 ``ActivationRecordsGenerator``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kframe.core.kraft.configuration.configs import elr_safety_records
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.errors import KframeError
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

_ABORT: Final = RecordAndVersion(AbortTransactionRecord(reason="Controller failover"), 0)


def activate(
    context: KraftContext, bootstrap: Sequence[RecordAndVersion], *, in_transaction: bool
) -> ControllerResult[None]:
    """Begin a log without ``metadata.version`` with the ``bootstrap`` records; otherwise abort an open transaction.

    The bootstrap records of a level from 3.6 on are a transaction, so that they may be more than a batch.
    Raises KframeError if they lack ``metadata.version``.
    """
    if METADATA_VERSION in context.metadata.features:
        return ControllerResult([_ABORT] if in_transaction else [], None, atomic=True)
    levels = {
        record.record.name: record.record.feature_level
        for record in bootstrap
        if isinstance(record.record, FeatureLevelRecord)
    }
    if METADATA_VERSION not in levels:
        raise KframeError(f"the bootstrap records have no {METADATA_VERSION}: format the directory")
    records = list(bootstrap)
    if levels.get(ELR_VERSION, 0) > 0:
        records += elr_safety_records(context)
    if levels[METADATA_VERSION] < MetadataLevel.TRANSACTIONS:
        return ControllerResult(records, None, atomic=True)
    begin = RecordAndVersion(BeginTransactionRecord(name="Bootstrap records"), 0)
    end = RecordAndVersion(EndTransactionRecord(), 0)
    return ControllerResult([*([_ABORT] if in_transaction else []), begin, *records, end], None)
