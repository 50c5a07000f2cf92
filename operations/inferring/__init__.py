"""Which faults explain the rows that were read from logs: signs, candidates, hypotheses, ranked."""
