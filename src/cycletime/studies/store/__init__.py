"""A study on disk: its folder, and runs that come into it and go out of it."""
