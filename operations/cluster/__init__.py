"""Reads a live cluster from outside. `doctor` says why a client finds no route; `watch` says what is wrong in the
cluster.

doctor   doctor.py ◄─ causes.py ◄┬ answer_causes.py ◄─ server_answers.py
                                 └ log_causes.py    ◄─ logged.py ◄─ ../logs_to_rows
watch    watch.py ◄─ watcher.py ─► looks.py ─► auditor.py ─► what is wrong
"""
