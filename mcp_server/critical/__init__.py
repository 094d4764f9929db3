"""The parts of the tool ``criticalthinking``: its contract, its episodes and its transcript."""
