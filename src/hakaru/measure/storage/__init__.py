"""Storage as training uses it: does data arrive in time, from which layout, and what when it exceeds memory."""
