"""What goes over the network between a UR controller and its clients, as pure functions of the standard library alone.

`rtde` is port 30004, with lock-step for simulated controllers; `script` the lines of port 30003; `dashboard` 29999.
"""
