"""Ours beside Apache's own NameServer: the same operations to both, every answer and the whole state compared.

peers.py        the two processes          wire.py         blocking sockets, whole frames
operations.py   what is asked              comparing.py    when two answers are the same, and the named exceptions
pair.py         asks both and compares     machine.py      hypothesis chooses; conftest.py starts the worlds
"""
