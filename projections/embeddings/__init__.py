"""Vectors of thoughts: the spaces they live in, the process that embeds, and how it is asked."""
