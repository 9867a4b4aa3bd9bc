"""`python -m ssil` is `ssil`."""

import sys

from ssil.cli import main

if __name__ == "__main__":
    sys.exit(main())
