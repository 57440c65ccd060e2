"""``python -m seqlab.cli`` does the same as ``seqlab``."""

from seqlab.cli import main

if __name__ == "__main__":
    main()
