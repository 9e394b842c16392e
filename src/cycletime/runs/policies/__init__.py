"""Policies on disk and on their way to other programs: the run's own file, NumPy and ONNX."""
