"""Every bench of ``kframe bench``, by pytest-benchmark, each with a known answer.

The ordinary tests run each once at 1,000 partitions and look at the answer only. ``make bench`` times them all at
100,000 and 1,000,000, ``make bench-suite`` some at 10,000,000 too and keeps the record; by hand, with any of pytest's
and pytest-benchmark's own options::

    python -m pytest benchmarks/suite --benchmark-enable --bench-partitions 100000 --bench-brokers 10,100 -k failover

``answers.json`` holds the known answers: digests over what was decided, the columns at the end and all bytes that were
made. The reference twins make the same (``KFRAME_KERNELS=reference``). A change that alters them on purpose makes them
anew with ``--new-answers``, at every size that is kept there. At a size that is not, a bench is timed all the
same, and its result says ``"answer_known": false``.
"""
