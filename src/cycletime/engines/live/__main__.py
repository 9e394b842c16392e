"""The process that draws boards, as `screen` starts it."""

import sys

from cycletime.engines.live.screen import main

if __name__ == "__main__":
    sys.exit(main())
