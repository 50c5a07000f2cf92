"""The headers of the NameServer's and the broker's requests and responses, under their Java names."""
