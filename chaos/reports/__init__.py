"""Reports: what a person and a CI server read of a run."""
