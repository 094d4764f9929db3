"""Recall: which chains and thoughts are like what is asked, and how far they are to be trusted."""
