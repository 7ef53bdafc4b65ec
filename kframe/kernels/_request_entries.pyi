"""The signatures are those of the reference kernels. The .pyx file has the shapes, and what is IN or OUT."""

from kframe.kernels.reference.requests import copy_entries as copy_entries
from kframe.kernels.reference.requests import size_leader_and_isr as size_leader_and_isr
from kframe.kernels.reference.requests import size_update_metadata as size_update_metadata
from kframe.kernels.reference.requests import write_leader_and_isr as write_leader_and_isr
from kframe.kernels.reference.requests import write_stop_replica as write_stop_replica
from kframe.kernels.reference.requests import write_update_metadata as write_update_metadata
