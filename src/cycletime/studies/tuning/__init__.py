"""Tuning at one cycle time."""
