"""Started by `DriverLink`, with what `process.driver_command` says."""

import sys

from cycletime.robots.ur.driver.process import main

sys.exit(main(sys.argv[1:]))
