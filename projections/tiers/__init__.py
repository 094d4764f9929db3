"""Tiers of memory: who this is (L0), what has proved good (L1); below them is search (L2)."""
