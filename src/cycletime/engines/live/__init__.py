"""What a robot's run shows while it goes on: a board of numbers, drawn by a process of its own, or lines."""
