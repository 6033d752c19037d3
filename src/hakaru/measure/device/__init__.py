"""Device: how fast every card computes, moves memory and copies, and whether it computes right."""
