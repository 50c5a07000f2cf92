"""`nemesrv conform`: any client program, watched from outside and held against the rules of a client's profile."""
