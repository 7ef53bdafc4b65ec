"""Reference kernels: plain loops over single rows and slots, with the kernels' names, arguments and results.

Tests compare every kernel with its reference, and run whole histories on these (``kernels.py``). Shapes, dtypes, what
is IN and OUT, and the source of each rule are documented at the kernel.
"""

from verification.reference.assignments import *  # noqa: F403
from verification.reference.core import *  # noqa: F403
from verification.reference.describe import *  # noqa: F403
from verification.reference.elections import *  # noqa: F403
from verification.reference.isr_proposals import *  # noqa: F403
from verification.reference.kcat_topics import *  # noqa: F403
from verification.reference.kraft_columns import *  # noqa: F403
from verification.reference.kraft_partitions import *  # noqa: F403
from verification.reference.list_checks import *  # noqa: F403
from verification.reference.plan_cycles import *  # noqa: F403
from verification.reference.plans import *  # noqa: F403
from verification.reference.reassignments import *  # noqa: F403
from verification.reference.replica_index import *  # noqa: F403
from verification.reference.requests import *  # noqa: F403
from verification.reference.restarts import *  # noqa: F403
from verification.reference.stages import *  # noqa: F403
from verification.reference.states import *  # noqa: F403
from verification.reference.sweep import *  # noqa: F403
from verification.reference.znode_lines import *  # noqa: F403
