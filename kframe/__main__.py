"""``python -m kframe``: the command line."""

from kframe.cli.app import main

if __name__ == "__main__":
    main()
