"""`nemesrv conform`: observes any client program from outside and compares it with a client profile."""
