"""What keeps an arm from harm: limits, the supervisor of commands, and what follows a stop of the controller's own.

All of it is software: it keeps a learning agent from bumping into the real safety functions, and is none of them.
Limits of joints, planes and speeds on the teach pendant, and an emergency stop in reach, are.
"""
