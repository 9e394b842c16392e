"""The process of a simulated controller, as `launch` starts it."""

import sys

from cycletime.robots.ur.simulator.launch import serve_as_told

if __name__ == "__main__":
    sys.exit(serve_as_told(sys.argv[1]))
