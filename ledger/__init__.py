"""The append-only reasoning ledger.  Knows nothing of who reads it."""
