"""The signatures are those of the reference kernels. The .pyx file has the shapes, and what is IN or OUT."""

from kframe.kernels.reference.kraft_partitions import *  # noqa: F403
