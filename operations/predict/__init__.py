"""`nemesrv predict`: how long clients take to recover from a fault, and what share of sends fails, before it happens.

subject.py       what a scenario's one fault takes from whom; the scenario of `--fault KIND`
model.py         the window model: timers and phases drawn at random, in milliseconds
thread.py        a client's one scheduler thread, held up by brokers that do not answer
sends.py         one producer's round of queues, of which some do not answer
measured.py      the same quantities, read from the history of a run
runs.py          runs on the virtual clock with random phases, in processes beside each other
distribution.py  quantiles, and whether two samples differ by more than chance
prediction.py    all of it for one scenario and its what-ifs
page.py          the same as a table
"""
