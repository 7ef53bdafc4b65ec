"""What-if operations on a snapshot: brokers fail, restart or shut down, leaders are elected, partitions are reassigned,
topics are created, expanded or deleted."""

from __future__ import annotations

import logging

from kframe.lazy import load_at_access

# A what-if prints nothing unless the program configures logging.
logging.getLogger("kframe").addHandler(logging.NullHandler())

load_at_access(__name__)
