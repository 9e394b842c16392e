"""What computes runs, each kept on disk so that nothing is lost: compiled, native, cuda, stepped and real-time."""
