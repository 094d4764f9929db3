"""Entry of the command ``thought-ledger``.

Exits 0 when the answer is yes, 2 when there is none (bad usage, a refusal, no database), 3 when the
log is not as it was recorded; Python itself exits 1 on a crash.
"""

import os
import sys

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
    # Only now: importing them takes longer than anything above, and may print.
    from ledger.errors import LedgerError, TamperedEventError  # noqa: PLC0415
    from mcp_server.cli import app  # noqa: PLC0415

    try:
        app(obj=wire, prog_name="thought-ledger")
    except LedgerError as error:
        print(f"thought-ledger: {error}", file=sys.stderr)
        sys.exit(NO if isinstance(error, TamperedEventError) else NO_ANSWER)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output, head or less, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
