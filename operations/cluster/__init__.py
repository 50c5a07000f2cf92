"""A live cluster looked at from outside, read-only: what its servers say, and what is wrong in it."""
