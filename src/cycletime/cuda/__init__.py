"""Whole runs of PPO and SAC in persistent CUDA kernels: hundreds at a time, each in a thread block of its own.

kernel/      the kernels, CUDA C++ that is compiled where it runs
kernels.py   their sources and hashes, and the forms in which they fit a card
card.py      the GPU that is here, with a kernel compiled for it
layout.py    what the host and both kernels agree on
ppo.py       what is PPO's own: layout, description of a run, initial state, limits, expected time
sac.py       the same of SAC
device.py    a slice of time on a device: what goes there, and what comes back
run_batch.py many runs until they reach their budgets, a slice after the other
engine.py    all this as an engine like the others
check.py     whether the kernels work on the card that is here; tests/cuda/device_checks look closer
"""
