"""What a training leaves: its policy, evaluated, watched, filmed and exported to other programs."""
