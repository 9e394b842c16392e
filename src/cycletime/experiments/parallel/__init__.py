"""Whether the rules that hold with one environment hold with thousands, on tasks in closed form."""
