"""Whole PPO runs in one persistent CUDA kernel: hundreds at a time, each in a thread block of its own.

kernel/         the kernel, CUDA C++ that is compiled where it runs
layout.py       what host and kernel agree on: a run's description, its state, its results
describing.py   how runs are described to the kernel, and what they begin with
device.py       the GPU: what goes to it, what comes back, and why it cannot be used
group.py        many runs until they reach their budgets, a slice of time after the other
setting.py      what a run's files tell of its world
expecting.py    about how long a run takes
random_words.py the kernel's random numbers, once more
replay.py       what the kernel computes, once more in float64
"""
