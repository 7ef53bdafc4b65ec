"""The engine asked "what if?" of a snapshot: brokers fail, restart or shut down, leaders are elected, partitions are
moved, topics are created, expanded or deleted; what follows."""

from __future__ import annotations

import logging

from kframe.lazy import load_at_access

# A what-if prints nothing unless the program configures logging.
logging.getLogger("kframe").addHandler(logging.NullHandler())

load_at_access(__name__)
