"""The header of every request and response that has one, under its Java name: the NameServer's and the broker's."""
