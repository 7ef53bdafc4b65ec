"""kframe: a cluster controller as a framework. Leader selectors, stores and transports are plugins.

Importing it loads and starts nothing; each name below is loaded at first access.
"""

from __future__ import annotations

from kframe.lazy import load_at_access

__version__ = "0.2.0"

_PUBLIC = load_at_access(__name__)
