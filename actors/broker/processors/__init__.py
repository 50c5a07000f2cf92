"""A broker's request processors: a class for each kind of request, and BrokerProcessor, which finds the right class."""
