"""An embedded cluster that users can break: ``kframe console --demo``."""
