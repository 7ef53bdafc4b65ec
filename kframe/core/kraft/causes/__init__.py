"""The events that explain the records of a log. It decides with the rules of the other packages, and writes nothing."""
