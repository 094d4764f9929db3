"""Numbers for Prometheus, in its text format 0.0.4."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from projections.embeddings.status import EmbeddingStatus
from projections.status import GenerationStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], float]


class Metrics:
    """Counts what goes through the door of one process."""

    def __init__(self) -> None:
        self._started_at = time.time()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._refused: Counter[int] = Counter()

    def took(self, tool: str, outcome: str, seconds: float) -> None:
        """A tool was called."""
        self._calls[tool, outcome] += 1
        # typeshed counts in whole numbers.
        self._seconds[tool] += seconds  # pyright: ignore[reportArgumentType]

    def refused(self, status: int) -> None:
        """A request was turned away before it reached a tool."""
        self._refused[status] += 1

    def render(
        self,
        *,
        appends: int | None,
        position: int | None,
        generations: Sequence[GenerationStatus] = (),
        embeddings: EmbeddingStatus | None = None,
    ) -> str:
        """Everything, and what is known of the log; None when the database does not answer."""
        return "".join(
            (
                *self._families(appends, position),
                *_read_models(generations),
                *(_embeddings(embeddings) if embeddings else ()),
            )
        )

    def _families(self, appends: int | None, position: int | None) -> Iterator[str]:
        yield _family("up", "gauge", "Whether this server runs.", [({}, 1)])
        yield _family(
            "start_time_seconds", "gauge", "When it started.", [({}, round(self._started_at, 3))]
        )
        yield _family(
            "database_up",
            "gauge",
            "Whether the database answered just now.",
            [({}, int(position is not None))],
        )
        if position is not None:
            yield _family("position", "gauge", "The last position of the log.", [({}, position)])
        if appends is not None:
            yield _family(
                "appends_total", "counter", "Commands this server recorded.", [({}, appends)]
            )
        yield _family(
            "calls_total",
            "counter",
            "Calls of tools, by what became of them.",
            (({"tool": t, "outcome": o}, n) for (t, o), n in sorted(self._calls.items())),
        )
        yield _family(
            "http_refusals_total",
            "counter",
            "Requests turned away before any tool, by status.",
            (({"status": str(s)}, n) for s, n in sorted(self._refused.items())),
        )
        yield self._latency()

    def _latency(self) -> str:
        counts: Counter[str] = Counter()
        for (tool, _), count in self._calls.items():
            counts[tool] += count
        name = "thought_ledger_call_seconds"
        lines = [f"# HELP {name} How long calls of a tool took.\n", f"# TYPE {name} summary\n"]
        for tool, count in sorted(counts.items()):
            lines += [
                _line(f"{name}_sum", {"tool": tool}, self._seconds[tool]),
                _line(f"{name}_count", {"tool": tool}, count),
            ]
        return "".join(lines)


def _read_models(generations: Sequence[GenerationStatus]) -> Iterator[str]:
    def family(name: str, text: str, value: Callable[[GenerationStatus], float]) -> str:
        samples = ((_labels(row), value(row)) for row in generations)
        return _family(f"read_model_{name}", "gauge", text, samples)

    yield family("position", "How far of the log a generation is.", lambda row: row.position)
    yield family("lag_events", "Events it has yet to apply.", lambda row: row.lag_events)
    yield family("lag_seconds", "The age of the oldest of them.", lambda row: row.lag_seconds)
    yield family("parked_chains", "Chains it had to leave out.", lambda row: row.parked)
    yield family("led", "Whether a worker keeps it up.", lambda row: row.leader_pid is not None)


def _embeddings(status: EmbeddingStatus) -> Iterator[str]:
    def family(name: str, kind: str, text: str, value: float) -> str:
        return _family(f"embeddings_{name}", kind, text, [({}, value)])

    yield _family(
        "embeddings_state",
        "gauge",
        "How embedding is, and with which model.",
        [({"state": status.state, "model": status.model or ""}, 1)],
    )
    yield family("behind", "gauge", "Thoughts without a vector yet.", status.behind)
    yield family("thoughts", "gauge", "Vectors of the space that is searched.", status.thoughts)
    yield family("embedded", "gauge", "Texts embedded for them.", status.embedded)
    yield family("left_out", "gauge", "Thoughts that got no vector.", status.left_out)
    yield family("texts_per_second", "gauge", "How fast, of late.", status.rate or 0.0)


def _labels(row: GenerationStatus) -> Mapping[str, str]:
    return {
        "read_model": row.name,
        "generation": str(row.generation),
        "state": row.state,
        "version": str(row.projection_version),
    }


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> str:
    full = f"thought_ledger_{name}"
    lines = "".join(_line(full, labels, value) for labels, value in samples)
    return f"# HELP {full} {text}\n# TYPE {full} {kind}\n{lines}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    written = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    number = int(value) if isinstance(value, bool) else value
    return f"{name}{{{written}}} {number}\n" if written else f"{name} {number}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
