"""The signatures are those of the reference kernels. The .pyx file has the shapes, and what is IN or OUT."""

from kframe.kernels.reference.requests import fit_sections as fit_sections
from kframe.kernels.reference.requests import frame_sections as frame_sections
from kframe.kernels.reference.requests import measure_live_leaders as measure_live_leaders
from kframe.kernels.reference.requests import write_live_leaders as write_live_leaders
