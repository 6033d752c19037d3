"""Training over ranks: how it scales, which strategy fits, and which rank holds the others up."""
