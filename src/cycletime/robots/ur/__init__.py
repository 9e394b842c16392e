"""Universal Robots' arms: wire formats, links, driver, safety, kinematics, simulated controller, and UR-Reacher-2."""
