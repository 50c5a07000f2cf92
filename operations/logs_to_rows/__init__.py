"""Log lines of servers and clients into rows of a history: who wrote them, when, and on which clock."""
