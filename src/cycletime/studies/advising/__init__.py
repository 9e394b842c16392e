"""Which cycle time to use, and with which values: candidates, what a machine has time for, the smallest study."""
