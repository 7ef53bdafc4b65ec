"""The signatures are those of the reference kernels. The .pyx file has the shapes, and what is IN or OUT."""

from kframe.kernels.reference.kcat_topics import *  # noqa: F403
