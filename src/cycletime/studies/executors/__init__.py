"""Who computes the runs of a study: processes on this machine, Ray, or Slurm."""
