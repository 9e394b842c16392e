"""SAC on the GPU: whole runs in thread blocks of one kernel, like PPO's, with all networks in device memory."""
