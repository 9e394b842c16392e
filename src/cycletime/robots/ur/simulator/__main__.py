"""The process of a simulated controller, as `launch` starts it."""

import signal
import sys

from cycletime.robots.ur.simulator.launch import serve_as_told

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, and it ends with them
    sys.exit(serve_as_told(sys.argv[1]))
