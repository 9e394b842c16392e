"""Whole runs of PPO and SAC in persistent CUDA kernels: hundreds at a time, each in a thread block of its own."""
