"""The paper's experiments as studies, its figures and tables, and its claims with their criteria."""
