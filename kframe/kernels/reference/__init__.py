"""Reference kernels: plain loops over single rows and slots, with the kernels' names, arguments and results.

Tests compare every kernel with its reference, and ``KFRAME_KERNELS=reference`` runs everything on these. Shapes,
dtypes, what is IN and OUT, and the source of each rule are documented at the kernel.
"""

from kframe.kernels.reference.assignments import *  # noqa: F403
from kframe.kernels.reference.core import *  # noqa: F403
from kframe.kernels.reference.describe import *  # noqa: F403
from kframe.kernels.reference.elections import *  # noqa: F403
from kframe.kernels.reference.kcat_topics import *  # noqa: F403
from kframe.kernels.reference.kraft_partitions import *  # noqa: F403
from kframe.kernels.reference.plan_cycles import *  # noqa: F403
from kframe.kernels.reference.plans import *  # noqa: F403
from kframe.kernels.reference.reassignments import *  # noqa: F403
from kframe.kernels.reference.replica_index import *  # noqa: F403
from kframe.kernels.reference.requests import *  # noqa: F403
from kframe.kernels.reference.stages import *  # noqa: F403
from kframe.kernels.reference.states import *  # noqa: F403
from kframe.kernels.reference.sweep import *  # noqa: F403
from kframe.kernels.reference.znode_lines import *  # noqa: F403
