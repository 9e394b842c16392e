"""Whole runs of PPO and SAC in persistent CUDA kernels: hundreds at a time, each in a thread block of its own.

kernel/      the kernels, CUDA C++ that is compiled where it runs
kernels.py   their sources and hashes, and the forms in which they fit a card
card.py      the GPU that is here, with a kernel compiled for it
layout.py    what the host and both kernels agree on
ppo.py       what is PPO's own: layout, description of a run, initial state, limits, expected time
sac.py       the same of SAC
tasks.py     the tasks that the kernels have
device.py    a slice of time on a device: what goes there, and what comes back
run_batch.py many runs until they reach their budgets, a slice after the other
engine.py    all this as an engine like the others
philox.py    the kernels' random numbers in NumPy
replay.py    what PPO's kernel computes, once more in float64 by the agent itself
check.py     whether all of that holds on the card that is here; sac_check.py has SAC's part
"""
