"""What checks count of a history's traffic, over the columns of rows that belong together; and verdicts without Spark.

part.py           a part of a history, what must stay together in it, and what is counted of it (Reading)
slots.py          slots of clients' operations (availability, recovery_time, exercised)
forbidden.py      what a broker's topic forbids (availability)
deliveries.py     who was not received within D, or not as it was sent (messages_delivered)
commits.py        commits that have to be explained (commits_follow_work), by queue and group (commits_by_place.py);
                  offsets_kept.py: offsets that brokers were told, and had later
uses.py           what clients used (living_are_used); tries.py: the tries of their sends
"""
