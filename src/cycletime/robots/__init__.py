"""Robots: the real-time loop, and arms behind a network link with their driver, safety and simulated controllers."""
