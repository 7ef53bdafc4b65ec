"""The public names. ``kframe.lazy`` reads this file: each line imports one name under the name it has here."""

from kframe.errors import ErrorCode as ErrorCode
from kframe.errors import KframeError as KframeError
from kframe.model import events as events
from kframe.model.admin import NewPartitions as NewPartitions
from kframe.model.admin import NewTopic as NewTopic
from kframe.model.cluster import ClusterState as ClusterState
from kframe.model.events import ElectionType as ElectionType
from kframe.model.ids import ElectionKind as ElectionKind
from kframe.plans.file.read import load_plan as load_plan
from kframe.plans.generate import PlanProposal as PlanProposal
from kframe.plans.generate import PlanRequest as PlanRequest
from kframe.plans.generate import plan as plan
from kframe.registry.hookspecs import hookimpl as hookimpl
from kframe.registry.registry import build_registry as build_registry
from kframe.runtime.builder import ControllerBuilder as ControllerBuilder
from kframe.runtime.controller import Controller as Controller
from kframe.runtime.controller import IsrProposal as IsrProposal
from kframe.runtime.exposition import exposition as exposition
from kframe.runtime.kraft_controller import KraftController as KraftController
from kframe.runtime.kraft_controller import KraftControllerBuilder as KraftControllerBuilder
from kframe.runtime.status import Status as Status
from kframe.snapshot import Snapshot as Snapshot
from kframe.snapshot import read_snapshot as read_snapshot
from kframe.snapshot import write_snapshot as write_snapshot
from kframe.whatif import Outcome as Outcome
from kframe.whatif import Sweep as Sweep
from kframe.whatif import WhatIf as WhatIf
from kframe.whatif import sweep as sweep

__version__: str
_PUBLIC: tuple[str, ...]
