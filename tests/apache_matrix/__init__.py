"""The shipped scenarios on Apache's own servers: `make apache` runs them all and writes docs/apache.md's tables."""
