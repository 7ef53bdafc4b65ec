"""Peers that solve a plan as an assignment problem: Meta's Rebalancer, CP-SAT of OR-Tools, and HiGHS.

Each runs as a script in an environment of its own, reads the files of a case, and imports nothing of kframe.
"""
