"""Log files of RocketMQ's servers and clients become events, and each line is accounted for.

layouts.py   the head of a line: when, who          stream.py   lines ─► rows and counts
shapes/      what was said ─► event and fields      files.py    folders, archives, ranges ─► lines
skim.py      blocks that nobody asks for            reading.py  all of it, by Spark or without
"""
