"""``python -m seqlab.cli`` does the same as ``seqlab``."""

from seqlab.cli.app import main

if __name__ == "__main__":
    main()
