"""Measurements on the web: runs, figures and histories, for operators."""
