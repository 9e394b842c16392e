"""PPO whose gradient steps are compiled beforehand, from the C++ beside this; an installation may be without it."""
