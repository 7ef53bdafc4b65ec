"""Asking for memory ahead of its use, in kernels that visit rows far apart."""

# How many rows ahead to ask for columns that are read out of order: a broker's rows lie far apart. Measured: without it
# copying takes half as long again, and 8 to 16 are alike.
cdef enum:
    AHEAD = 12

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define KFRAME_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define KFRAME_PREFETCH(address) ((void)0)
    #endif
    """
    void KFRAME_PREFETCH(const void* address) noexcept nogil
