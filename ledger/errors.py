"""Every refusal and fault the ledger can name, under one base class."""


class LedgerError(Exception):
    """Base of every error a caller may want to catch; its text says what to do."""
