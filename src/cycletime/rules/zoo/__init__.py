"""RL Baselines3 Zoo files: one environment's entry carried to another cycle time, every other byte as it was."""

from cycletime.rules.zoo.bounds import MOST_BYTES
from cycletime.rules.zoo.entries import ZooTransfer, transfer_entry

__all__ = ["MOST_BYTES", "ZooTransfer", "transfer_entry"]
