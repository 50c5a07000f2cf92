"""What a broker answers: a class for each kind of request, and the one that finds it by the code."""
