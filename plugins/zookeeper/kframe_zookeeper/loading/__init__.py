"""The cluster in the znodes as columns for a new controller: registrations, topics, settings and states. ``memory.py``
has what the store remembers of them, and the malformed znodes that it leaves out.
"""
