"""How read models show what PostgreSQL text cannot hold."""


def shown(text: str) -> str:
    """The text with U+0000, which only the log keeps, as U+FFFD."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def shown_or_none(text: str | None) -> str | None:
    """The same for a text that may be missing."""
    return None if text is None else shown(text)
