"""Entry of the command ``thought-ledger``.

Exits 0 when the answer is yes, 2 when there is none (bad usage, a refusal, no database), 3 when it
is no (the log is not as it was recorded, ``doctor`` found a failure, a chain is parked still);
Python itself exits 1 on a crash.
"""

import io
import os
import signal
import sys
from typing import NoReturn

from mcp_server.wire import Wire, claim_stdout

NO_ANSWER = 2
NO = 3
INTERRUPTED = 130


def main() -> None:
    """Run the command line; for ``serve``, stdout is the protocol's before anything is imported."""
    wire = claim_stdout() if _serves(sys.argv[1:]) else None
    _run(wire)


def _serves(arguments: list[str]) -> bool:
    return arguments[:1] == ["serve"] and not {"--help", "-h"} & set(arguments)


def _run(wire: Wire | None) -> None:
    _mend_streams()
    try:
        if wire is None:
            # A command that is ended gives the embedded database up like one that ends.
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, _end)
        _run_command(wire)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _run_command(wire: Wire | None) -> None:
    # Only now: importing them takes longer than anything above, and may print.
    from ledger.database import DriverError  # noqa: PLC0415
    from ledger.errors import LedgerError, TamperedEventError, reason_of  # noqa: PLC0415
    from mcp_server.cli import app  # noqa: PLC0415

    try:
        try:
            app(obj=wire, prog_name="thought-ledger")
        finally:
            # Here, where it can be said that it failed, and not when the interpreter ends.
            sys.stdout.flush()
    except LedgerError as error:
        _refuse(str(error), NO if isinstance(error, TamperedEventError) else NO_ANSWER)
    except DriverError as error:
        _refuse(f"the database failed ({reason_of(error)}); try again when it is well", NO_ANSWER)
    except BrokenPipeError:
        # The reader of our output, head or less, has seen enough.
        _forget_output()
    except OSError as error:
        _forget_output()
        _refuse(f"the system refused something ({error.strerror or error})", NO_ANSWER)


def _mend_streams() -> None:
    """Give closed streams a place to go to, and letters their encoding lacks another shape."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - till the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _refuse(sentence: str, code: int) -> NoReturn:
    # Not before: it imports what would keep the protocol's descriptors waiting.
    from ledger.logs import say_refusal  # noqa: PLC0415

    say_refusal("thought-ledger", sentence)
    sys.exit(code)


def _forget_output() -> None:
    # Or the interpreter would try once more to write it, and complain, when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
