"""The process of a simulated controller, as `launch` starts it."""

import signal
import sys

from cycletime.robots.ur.simulator.launch import serve_from_json

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, and it ends with them
    sys.exit(serve_from_json(sys.argv[1]))
