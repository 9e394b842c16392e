"""Whole PPO runs in one persistent CUDA kernel: hundreds at a time, each in a thread block of its own.

kernel/         the kernel, CUDA C++ that is compiled where it runs
layout.py       what host and kernel agree on: a run's description, its state, its results
tasks.py        the tasks that the kernel has
limits.py       which runs it cannot take
describing.py   how runs are described to it, and what they begin with
forms.py        where a run's data lie, by the shared memory that a card has
here.py         the GPU that is here: why it cannot be used, and which form it takes
card.py         the same with a kernel compiled for it
device.py       what goes to it, and what comes back
group.py        many runs until they reach their budgets, a slice of time after the other
expecting.py    about how long a run takes
random_words.py the kernel's random numbers, once more
replay.py       what the kernel computes, once more in float64
simulating.py   the kernel's tasks against those in JAX
checking.py     whether all of that holds on the card that is here
launching.py    runs on the kernel without any files, for checks and measurements
engine.py       all this as an engine like the others
"""
