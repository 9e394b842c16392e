"""A search for a rule that keeps horizons in seconds, and its trial: studies, results, ranking, the frozen list."""
