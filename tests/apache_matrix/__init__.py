"""The shipped scenarios on Apache's own servers: `make apache` runs them all and writes the table of docs/apache.md."""
