"""``python -m kframe.cli``: the command line, if the ``kframe`` script is not on the path."""

from kframe.cli.app import main

if __name__ == "__main__":
    main()
