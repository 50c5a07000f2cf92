"""Reads log files of RocketMQ's servers and clients into events. Every line is counted.

layouts.py   the head of a line: time, writer        stream.py   lines ─► rows and counts
shapes/      the text ─► event and fields           files.py    folders, archives, ranges ─► lines
skim.py      blocks that nobody needs               reading.py  all of it, with Spark or without
"""
