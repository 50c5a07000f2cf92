"""What Spark gathers for the checks: each module asks one question of a history and gives small, plain answers.

gathering.py      the control rows and lateness, once for all checks
operations.py     slots of clients' operations (availability, recovery_time, exercised)
messages.py       one row a message; fates.py, repeats.py count what became of them (no_acknowledged_loss, duplicates)
deliveries.py     who was not received within D, or not as it was sent (messages_delivered)
order.py          who stands behind a later one (order_kept)
effects.py        tries and pulls that show a fault (exercised); broker_uses.py: uses of lost brokers
plain_pages.py    of a large history: the parts of queues that hold nothing but plain messages; shared.py: what is kept
small_tables.py   plain rows as tables beside a history
"""
