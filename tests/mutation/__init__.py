"""Generated mutants of the route table and of the selection code: `make mutation` runs mutmut on a copy of the tree."""
