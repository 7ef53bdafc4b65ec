"""The command line. Commands call the library and compute nothing; what imports slowly is imported where it is used."""
