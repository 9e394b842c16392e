"""Many runs: specified in one file, planned, executed anywhere, resumed, and judged."""
