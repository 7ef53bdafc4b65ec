"""What a store implements (``Store`` and its optional protocols), the events that it reports and its records."""

from __future__ import annotations

from kframe.core.state.stored_states import reload
from kframe.model.changes import StateChange, StoredStates, WriteCode, WriteResult
from kframe.model.events import (
    BrokerDefaultsChanged,
    BrokerModified,
    BrokersChanged,
    ControllerChanged,
    DeletionsMarked,
    Event,
    IsrChangesNotified,
    LogDirEventsNotified,
    PreferredElectionStored,
    ReassignmentsStored,
    Reelect,
    SessionExpired,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe.ports.store import BrokersLoaded, Contending, Notify, Pipelining, ReportingBrokers, Store

__all__ = [
    "BrokerDefaultsChanged",
    "BrokerModified",
    "BrokersChanged",
    "BrokersLoaded",
    "Contending",
    "ControllerChanged",
    "DeletionsMarked",
    "Event",
    "IsrChangesNotified",
    "LogDirEventsNotified",
    "Notify",
    "Pipelining",
    "PreferredElectionStored",
    "ReassignmentsStored",
    "Reelect",
    "ReportingBrokers",
    "SessionExpired",
    "StateChange",
    "Store",
    "StoredStates",
    "TopicModified",
    "TopicSettingsChanged",
    "TopicsChanged",
    "WriteCode",
    "WriteResult",
    "reload",
]
