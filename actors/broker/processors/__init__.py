"""A broker's request processors: a class for each kind of request, and one that finds the class by the request code."""
