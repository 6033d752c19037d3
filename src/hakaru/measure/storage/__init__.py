"""Storage as training uses it: does data arrive in time, from which layout, and when it exceeds memory."""
