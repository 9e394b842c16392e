"""Investigations: studies, frozen criteria, results, verdicts, figures and a page."""
