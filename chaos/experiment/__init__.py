"""Runs one experiment from cluster start to final reads, on the real clock or the virtual one. The experiment only
records; it never judges."""
