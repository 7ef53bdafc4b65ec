"""All compiled kernels. Without them the import fails: there is no slow substitute."""

from __future__ import annotations

from kframe._core import *  # noqa: F403
from kframe.kernels._assignments import *  # noqa: F403
from kframe.kernels._describe import *  # noqa: F403
from kframe.kernels._elections import *  # noqa: F403
from kframe.kernels._isr_proposals import *  # noqa: F403
from kframe.kernels._kcat_topics import *  # noqa: F403
from kframe.kernels._kraft_columns import *  # noqa: F403
from kframe.kernels._kraft_partitions import *  # noqa: F403
from kframe.kernels._list_checks import *  # noqa: F403
from kframe.kernels._plan_cycles import *  # noqa: F403
from kframe.kernels._plans import *  # noqa: F403
from kframe.kernels._reassignments import *  # noqa: F403
from kframe.kernels._replica_index import *  # noqa: F403
from kframe.kernels._request_entries import *  # noqa: F403
from kframe.kernels._request_sections import *  # noqa: F403
from kframe.kernels._restarts import *  # noqa: F403
from kframe.kernels._stages import *  # noqa: F403
from kframe.kernels._states import *  # noqa: F403
from kframe.kernels._sweep import *  # noqa: F403
from kframe.kernels._znode_lines import *  # noqa: F403
