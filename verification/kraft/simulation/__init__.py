"""A KRaft cluster in one thread from one seed: kframe's controller on a faulty disk, brokers, clients and clocks.

The controller is the product: its log, quorum, decisions and snapshots, step by step. Brokers read its log, replicate
records and propose ISRs. ``rules`` checks every record that the controller writes against a plain model of the
metadata, ``history`` every log that it opens, and ``rest`` the whole cluster once all faults have ended.

    python -m verification.kraft.simulation --seeds 1-2000
"""
