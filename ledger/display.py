"""Text of strangers on a terminal."""


def printable(text: str) -> str:
    """Without control characters, so that a thought cannot drive the terminal it is shown on."""
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)
