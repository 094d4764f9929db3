"""What of all that there is a server offers, as its command line says it."""

from dataclasses import dataclass
from typing import Self

from ledger.errors import LedgerError

TOOLSETS = ("compat", "chains", "critical", "kodegen", "memory")
TOOLSETS_DEFAULT = ("compat", "chains")


class ChoiceError(LedgerError):
    """A choice of tools that there are not, or of none."""


@dataclass(frozen=True)
class Choice:
    """Which tools: those of the toolsets, or those that are named, of whatever toolset.

    ``read_only``: of these only the ones that record nothing.
    """

    toolsets: tuple[str, ...] = TOOLSETS_DEFAULT
    tools: tuple[str, ...] | None = None
    read_only: bool = False

    @classmethod
    def read(cls, toolsets: str | None, tools: str | None, *, read_only: bool) -> Self:
        """The choice of a command line, names with commas between.  Raises ChoiceError."""
        if toolsets is not None and tools is not None:
            raise ChoiceError(
                "--toolsets and --tools exclude each other; --tools names single ones"
            )
        if tools is not None:
            return cls(TOOLSETS, _names(tools, "--tools"), read_only)
        if toolsets is None:
            return cls(read_only=read_only)
        chosen = _names(toolsets, "--toolsets")
        for name in chosen:
            if name not in TOOLSETS:
                raise ChoiceError(f"there is no toolset {name!r}; known: {', '.join(TOOLSETS)}")
        return cls(chosen, None, read_only)


def _names(text: str, option: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ChoiceError(
            f"{option} names nothing; leave it out, or give names with commas between"
        )
    return names
