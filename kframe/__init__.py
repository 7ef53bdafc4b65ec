"""kframe: a cluster controller as a framework. Leader selectors, stores and transports are plugins.

Importing it loads and starts nothing; each name below is loaded at first access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kframe.api.builder import ControllerBuilder as ControllerBuilder
    from kframe.api.controller import Controller as Controller
    from kframe.api.controller import IsrProposal as IsrProposal
    from kframe.errors import ErrorCode as ErrorCode
    from kframe.errors import KframeError as KframeError
    from kframe.model import events as events
    from kframe.model.admin import NewPartitions as NewPartitions
    from kframe.model.admin import NewTopic as NewTopic
    from kframe.model.cluster import ClusterState as ClusterState
    from kframe.model.events import ElectionType as ElectionType
    from kframe.model.ids import ElectionKind as ElectionKind
    from kframe.planning import PlanProposal as PlanProposal
    from kframe.planning import PlanRequest as PlanRequest
    from kframe.planning import plan as plan
    from kframe.registry.hookspecs import hookimpl as hookimpl
    from kframe.registry.registry import build_registry as build_registry
    from kframe.runtime.metrics import exposition as exposition
    from kframe.runtime.status import Status as Status
    from kframe.snapshot import Snapshot as Snapshot
    from kframe.snapshot import read_snapshot as read_snapshot
    from kframe.snapshot import write_snapshot as write_snapshot
    from kframe.whatif import Outcome as Outcome
    from kframe.whatif import WhatIf as WhatIf
    from kframe.whatif import load_plan as load_plan

__version__ = "0.1.0"

#: The module of each public name, or the public module itself.
_PUBLIC = {
    "ClusterState": "kframe.model.cluster",
    "Controller": "kframe.api.controller",
    "ControllerBuilder": "kframe.api.builder",
    "ElectionKind": "kframe.model.ids",
    "ElectionType": "kframe.model.events",
    "ErrorCode": "kframe.errors",
    "IsrProposal": "kframe.api.controller",
    "KframeError": "kframe.errors",
    "NewPartitions": "kframe.model.events",
    "NewTopic": "kframe.model.events",
    "Outcome": "kframe.whatif",
    "PlanRequest": "kframe.planning",
    "PlanProposal": "kframe.planning",
    "Snapshot": "kframe.snapshot",
    "Status": "kframe.runtime.status",
    "WhatIf": "kframe.whatif",
    "build_registry": "kframe.registry.registry",
    "events": "kframe.model.events",
    "exposition": "kframe.runtime.metrics",
    "hookimpl": "kframe.registry.hookspecs",
    "load_plan": "kframe.whatif",
    "plan": "kframe.planning",
    "read_snapshot": "kframe.snapshot",
    "write_snapshot": "kframe.snapshot",
}


if not TYPE_CHECKING:  # For a type checker only the names above exist.

    def __getattr__(name: str) -> Any:
        """Load a public name. Raises AttributeError for any other."""
        if name not in _PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(_PUBLIC[name])
        value = module if module.__name__.endswith(f".{name}") else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
