"""What computes runs, each kept on disk so that nothing is lost: compiled, stepped, cuda and real-time."""
