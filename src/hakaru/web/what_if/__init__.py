"""What-if in the web: scenarios of operators, played one at a time in a process of their own."""
