"""Running controllers, as servers, programs and tests call them, and what builds them."""

from __future__ import annotations

from kframe.runtime.builder import ControllerBuilder
from kframe.runtime.controller import Controller, IsrProposal
from kframe.runtime.kraft_controller import KraftController, KraftControllerBuilder

__all__ = ["Controller", "ControllerBuilder", "IsrProposal", "KraftController", "KraftControllerBuilder"]
