"""What the readers (`sources`) and the writers (`export`) of a format must agree on, in one place."""
