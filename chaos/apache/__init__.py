"""Apache's own servers and clients as nodes of a run: a JVM each, behind fronts that see what it does."""
