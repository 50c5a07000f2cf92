"""Compares the runs of side A with the runs of side B.

samples.py       recovery time, availability, staleness and what else one run measured
per_client.py    what each client of one run went through, and the two sides client by client
two_samples.py   two samples: they differ, no difference found, or cannot tell
compare.py       both sides' runs compared, and the tables of `nemesrv compare`
"""
