"""stand-in"""


def register(app): ...
