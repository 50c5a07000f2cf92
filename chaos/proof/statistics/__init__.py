"""Statistics that hold up: the start choice test with its power, and the comparison of runs.

start_choice.py   is the first NameServer chosen evenly, and how many starts does it take to know
power.py          the command `nemesrv power`
two_samples.py    two samples: they differ, no difference found, or cannot tell
samples.py        recovery time, availability and staleness of recorded runs (Spark)
compare.py        the command `nemesrv compare`
"""
