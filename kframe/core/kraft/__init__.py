"""The rules of Kafka 4.4's KRaft controller, in a package for each of its managers.

The modules of a package decide: they get a ``KraftContext`` and an event, and write records. Its ``replay.py`` applies
these records to the metadata, and imports the model only. ``kframe.core.kraft.replay`` has the function of each type.
"""
