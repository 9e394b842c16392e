"""A simulated UR controller: a process of its own that speaks RTDE, the real-time interface and the dashboard."""
