"""``kframe.ports.store.Store``: a module for each group of store requests, and the events of fired watches. The worker
thread handles watches and begins the next session.
"""
