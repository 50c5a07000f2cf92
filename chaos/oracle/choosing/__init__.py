"""How a client goes through its list of NameServers: machine.py says what each step may be, labels.py which machine a
client is, by the likelihoods of all of them. Plain; what was seen comes in as steps, whoever saw it."""
