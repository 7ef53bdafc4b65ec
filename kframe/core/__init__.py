"""The controller core: decides what the cluster must do next. No I/O, clock, thread or random number in here."""
