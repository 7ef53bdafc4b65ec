"""An embedded cluster that one can break: ``kframe console --demo``."""
