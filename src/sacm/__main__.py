"""`python -m sacm`: the command line, where the command itself is not on the path."""

from sacm.cli.main import main

if __name__ == "__main__":
    main()
