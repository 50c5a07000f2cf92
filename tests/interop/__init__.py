"""Ours against the real Apache RocketMQ: its clients, its mqadmin, its NameServer and its broker. Marker `java`."""
