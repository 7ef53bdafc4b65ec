"""The events that explain the records of a log, and the rule that elected a leader.

An event explains a change if the rules of the other packages write that change for it.
"""
