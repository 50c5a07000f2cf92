"""Turns the log lines of NameServers, brokers and clients into rows of a history, with corrected times."""
