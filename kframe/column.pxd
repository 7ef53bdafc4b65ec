"""What the partition columns are made of, as in ``model/columns.py``."""

from libc.stdint cimport int16_t

#: A broker index as it stands in the columns ``leader``, ``replica`` and ``isr``; elsewhere broker indexes are int32.
ctypedef int16_t broker_t
