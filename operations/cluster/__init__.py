"""Reads a live cluster from outside: why a client finds no route (doctor), what is wrong (watch).

doctor   doctor.py ◄─ causes.py ◄┬ answer_causes.py ◄─ server_answers.py
                                 └ log_causes.py    ◄─ logged.py ◄─ ../logs_to_rows
watch    watch.py ◄─ watcher.py ─► looks.py ─► auditor.py ─► what is wrong
"""
