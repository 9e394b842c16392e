"""`python -m cycletime` is the command `cycletime`."""

import sys

from cycletime.cli import main

sys.exit(main())
