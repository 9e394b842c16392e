"""A simulated UR controller: a process of its own that speaks RTDE, the real-time interface and the dashboard.

`controller` is the whole robot without a network, tick by tick; the `..._session` files are what it says to one client
each, bytes in and bytes out; `server` moves the bytes and keeps the time; `launch` starts the process.
"""
