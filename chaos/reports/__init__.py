"""Reports of a run, for persons and CI servers."""
