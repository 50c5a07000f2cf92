"""Are messages lost, late, twice or out of order, and who consumes what: the checks of messages and consuming."""
