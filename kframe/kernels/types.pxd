"""Types of the partition columns, as in ``model/columns.py``."""

from libc.stdint cimport int16_t

#: A broker index in the columns ``leader``, ``replica`` and ``isr``; elsewhere broker indexes are int32.
ctypedef int16_t broker_t
