"""What a server or a worker says on stderr: lines for people, or one JSON object a line."""

import json
import logging
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from ledger.display import printable
from ledger.said import Said, facts_of
from ledger.settings import LogFormat

# Whose notes are said as well; of others, libraries, only warnings are.
OURS = ("thought-ledger", "projections")


class Lines(logging.StreamHandler[Any]):
    """Writes to stderr as it is at the moment, each record in one piece."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(formatter)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class names it
        """Whoever started us may have closed our stderr; that is no reason to stop."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


class JsonFormatter(logging.Formatter):
    """One object a record: time, level, logger, message, its facts, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, Any] = {
            "time": moment.isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: fact for name, fact in facts_of(record.msg).items() if name not in fields}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            fields.setdefault("error", f"{type(error).__name__}: {error}")
            fields["traceback"] = self.formatException(record.exc_info)
        # In ASCII: stderr may know no other letters, and would write escapes that are no JSON.
        return json.dumps(fields, default=str)


def configure(log_format: LogFormat) -> None:
    """Let whatever this process says from now on, by whomever, be written in this form."""
    as_json = log_format is LogFormat.JSON
    formatter = JsonFormatter() if as_json else logging.Formatter("%(name)s: %(message)s")
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    root.handlers[:] = [Lines(formatter)]
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    if as_json:
        logging.captureWarnings(capture=True)
        sys.excepthook = _say_uncaught
        sys.unraisablehook = _say_unraisable
        threading.excepthook = _say_thread


def teller(name: str, level: int) -> Callable[[str], None]:
    """Says what it is told, sentences with or without facts, by the logger of *name*."""
    logger = logging.getLogger(name)

    def tell(line: str) -> None:
        logger.log(level, Said(printable(line), **facts_of(line)))

    return tell


def say_refusal(name: str, sentence: str) -> None:
    """Say why there is no answer, in the form that was asked for, if one was."""
    if any(isinstance(handler, Lines) for handler in logging.getLogger().handlers):
        logging.getLogger(name).error(Said(sentence, event="refused"))
    else:
        print(f"{name}: {sentence}", file=sys.stderr)


def _say_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    logging.getLogger(OURS[0]).critical(
        Said("ended by a bug", event="crashed"), exc_info=(kind, error, traceback)
    )


def _say_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None:
        _say_uncaught(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)


def _say_unraisable(arguments: "sys.UnraisableHookArgs") -> None:
    error = arguments.exc_value
    logging.getLogger(OURS[0]).error(
        Said(arguments.err_msg or "an error nobody could be told of", event="unraisable"),
        exc_info=error,
    )
