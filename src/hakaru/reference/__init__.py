"""Published figures of other clusters and papers, each with its citation: data, and how to judge by it."""
