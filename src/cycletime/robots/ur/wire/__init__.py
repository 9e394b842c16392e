"""What goes over the network between a UR controller and its clients, as pure functions of the standard library alone.

`frames`, `messages` and `recipes` are RTDE (port 30004), `stream` and `script` the real-time interface (30003),
`dashboard` the dashboard server (29999), `codes` the numbers that modes have, `lockstep` the registers by which a
simulated controller is moved tick by tick.
"""
