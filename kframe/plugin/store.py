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
    Elect,
    Event,
    IsrChangesLeft,
    LogDirEventsLeft,
    PreferredElectionLeft,
    ReassignmentsLeft,
    SessionExpired,
    TopicModified,
    TopicsChanged,
    TopicSettingsChanged,
)
from kframe.model.ports import (
    Acknowledging,
    Contending,
    Expecting,
    Foretelling,
    Met,
    Notify,
    Store,
    WaitingTimes,
    WritingAhead,
)

__all__ = [
    "Acknowledging",
    "BrokerDefaultsChanged",
    "BrokerModified",
    "BrokersChanged",
    "Contending",
    "ControllerChanged",
    "DeletionsMarked",
    "Elect",
    "Event",
    "Expecting",
    "Foretelling",
    "IsrChangesLeft",
    "LogDirEventsLeft",
    "Met",
    "Notify",
    "PreferredElectionLeft",
    "ReassignmentsLeft",
    "SessionExpired",
    "StateChange",
    "Store",
    "StoredStates",
    "TopicModified",
    "TopicSettingsChanged",
    "TopicsChanged",
    "WaitingTimes",
    "WriteCode",
    "WriteResult",
    "WritingAhead",
    "reload",
]
