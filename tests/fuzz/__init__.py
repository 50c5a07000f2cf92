"""Mutation fuzzing of everything that reads bytes of peers and files: `make fuzz`, and a short run in the suite."""
