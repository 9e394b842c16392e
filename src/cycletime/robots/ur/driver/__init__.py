"""The driver: a process of its own between an agent and an arm, so that no learning ever delays a safety check.

`driver` is its loop, `process` the program that is started; `link` is the agent's side, a `RobotLink` like any other;
both meet in `channel`, the memory that they share.
"""
