"""Trust: what the log says for and against each thought, and the score that follows from it."""
