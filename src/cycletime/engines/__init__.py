"""What computes runs: the compiled loop and the stepped loop, kept on disk so that nothing is lost."""
