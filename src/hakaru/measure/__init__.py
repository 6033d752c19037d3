"""Measure: one harness for cards, links and LINPACK, with a verdict for every number."""
