"""Reads a live cluster from outside. `doctor` says why a client finds no route; `watch` reports problems.

doctor   doctor.py ◄─ causes.py ◄┬ answer_causes.py ◄─ server_answers.py
                                 └ log_causes.py    ◄─ logged.py ◄─ ../logs_to_rows
watch    watch.py ◄─ watcher.py ─► looks.py ─► auditor.py ─► what is wrong
"""
