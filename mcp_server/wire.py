"""The two descriptors a client talks over, set aside before anything else can write to them.

Imports nothing heavy, so that ``__main__`` can call ``claim_stdout`` before it imports the server.
"""

import os
import sys
from dataclasses import dataclass

if sys.platform == "win32":

    def _duplicate_above_stderr(fd: int) -> int:
        return os.dup(fd)

else:
    import fcntl

    def _duplicate_above_stderr(fd: int) -> int:
        # Plain dup() takes the lowest free number, a standard one when that was closed.
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)


STDIN, STDOUT, STDERR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Wire:
    """Private descriptors of the client's input and output, which children do not inherit."""

    input_fd: int
    output_fd: int


def claim_stdout() -> Wire:
    """Keep stdin and stdout for the protocol alone: to be called once, before any heavy import.

    Afterwards fd 1 is stderr and fd 0 is empty, so a stray ``print``, a C library or a child
    process can neither write into the protocol nor eat a message.
    """
    wire = Wire(_duplicate(STDIN, os.O_RDONLY), _duplicate(STDOUT, os.O_WRONLY))
    _divert(STDIN, os.open(os.devnull, os.O_RDONLY))
    _divert(STDOUT, _duplicate(STDERR, os.O_WRONLY))
    # The old one knows what fd 1 was, a file in which it could seek, and would try to.
    sys.stdout = open(STDOUT, "w", closefd=False)  # noqa: SIM115 - till the end
    return wire


def _duplicate(fd: int, flags: int) -> int:
    """Duplicate a descriptor, or open the null device when it was closed by whoever started us."""
    try:
        return _duplicate_above_stderr(fd)
    except OSError:
        null = os.open(os.devnull, flags)
        private = _duplicate_above_stderr(null)
        os.close(null)
        return private


def _divert(fd: int, target: int) -> None:
    if target != fd:
        os.dup2(target, fd)
        os.close(target)
