"""That every check can fail: planted defects, the self-test, worked incidents, and how many samples decide."""
