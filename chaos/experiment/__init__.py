"""Made: one experiment from cluster up to final reads, on the real clock or the virtual one.

It records; it never judges.
"""
