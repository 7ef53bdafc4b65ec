"""The command line. Commands call the library and compute nothing; slow imports happen where they are used."""
