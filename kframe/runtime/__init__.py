"""The loop around the core: one queue of events, one consumer, effects performed in order."""
