"""How a client goes through its list of NameServers: machine.py has the possible ways and their steps, labels.py finds
a client's way by the likelihoods of all of them. Plain; what was seen comes in as steps, whoever saw it."""
