"""The experiment: scenarios, links and faults, workloads, the history, the checkers and the verdict."""
