"""Property tests try the same examples each time, so that a failure is the change's and not the day's.

For fresh examples: pytest --hypothesis-profile=default
"""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
