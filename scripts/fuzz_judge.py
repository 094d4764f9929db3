"""Whether a server answers as it must: each request once, in JSON-RPC, and what it recorded."""

import json
from collections import Counter
from typing import Any, cast

from fuzz_calls import RequestId, Shot

# A bug that was caught at the door.
CRASHED = "this server failed"


class ViolationError(Exception):
    """The server did what it must not."""


class Volley:
    """Some shots that are under way, and which of them still wait for their answers."""

    def __init__(self, shots: list[Shot], late: int = 0) -> None:
        """*late*: how many shots of before may be answered yet."""
        self._shots = shots
        self._by_id = {shot.request_id: shot for shot in shots if shot.request_id is not None}
        self._one = Counter(shot.request_id for shot in shots if shot.answers == "one")
        self._some = Counter(shot.request_id for shot in shots if shot.answers == "some")
        self.maybe = late + sum(shot.answers == "maybe" for shot in shots)
        """How many answers may come besides."""

    @property
    def waiting(self) -> int:
        """How many answers have to come yet."""
        return self._one.total() + self._some.total()

    def take(self, message: dict[str, Any]) -> Shot | None:
        """The shot that a message answers, as far as can be told.  Raises ViolationError."""
        check_message(message)
        if "method" in message:
            return None
        request_id = cast("RequestId", message["id"])
        if self._one[request_id] > 0:
            self._one[request_id] -= 1
        elif self._some[request_id] > 0:
            self._some[request_id] -= 1
        elif self._some.total():
            # Which of them it answers cannot be told, and does not matter.
            self._some[next(iter(+self._some))] -= 1
        elif self.maybe > 0:
            self.maybe -= 1
        else:
            others = [shot for shot in self._shots if shot.answers != "one"]
            raise ViolationError(
                f"an answer nobody waits for: {shown(message)}; sent besides: "
                + "".join(f"\n  {shown(shot)[:300]}" for shot in others)
            )
        return None if request_id is None else self._by_id.get(request_id)

    def unanswered(self) -> list[Shot]:
        """The shots, or as many as may be those, that wait."""
        waiting = (+self._one) + (+self._some)
        return [shot for shot in self._shots if waiting[shot.request_id]]


class Recorded:
    """What the answers say was recorded."""

    def __init__(self) -> None:
        self.chain_ids: set[str] = set()
        self.outcomes: Counter[str] = Counter()
        self.perhaps = 0
        """Thoughts whose answer nobody waited for."""
        self._thoughts = 0
        self._requests: set[str] = set()

    @property
    def thoughts(self) -> int:
        return self._thoughts + len(self._requests)

    def take(self, shot: Shot | None, message: dict[str, Any]) -> dict[str, Any]:
        """Count an answer; its structured content, if it has any.  Raises ViolationError."""
        result: dict[str, Any] = message.get("result", {})
        text = json.dumps(result.get("content", ""))
        if CRASHED in text:
            raise ViolationError(f"a bug, at {shown(shot)}: {text}")
        structured: dict[str, Any] = result.get("structuredContent") or {}
        if result.get("isError") and structured:
            raise ViolationError(f"a refusal with content: {shown(message)}")
        outcome = (
            "error" if "error" in message else "refused" if "isError" in result else "answered"
        )
        outcome = "answered" if outcome == "refused" and not result["isError"] else outcome
        self.outcomes[outcome] += 1
        # Feedback names the thought it judges.
        numbered = structured.keys() & {"thoughtNumber", "thought_number"}
        if numbered and "signal" not in structured:
            if shot is not None and shot.request is not None:
                self._requests.add(shot.request)
            else:
                self._thoughts += 1
        if isinstance(structured.get("chain_id"), str):
            self.chain_ids.add(structured["chain_id"])
        return structured


def check_message(message: object) -> None:
    """Raise ViolationError when it is no JSON-RPC message of a server."""
    match message:
        case {"result": object(), "error": object()}:
            right = False
        case {"jsonrpc": "2.0", "method": str()}:
            right = True
        case {"jsonrpc": "2.0", "id": int() | float() | str() | None, "result": dict()}:
            right = True
        case {
            "jsonrpc": "2.0",
            "id": int() | float() | str() | None,
            "error": {"code": int(), "message": str()},
        }:
            right = True
        case _:
            right = False
    if not right:
        raise ViolationError(f"no JSON-RPC: {shown(message)}")


def shown(something: object) -> str:
    """Enough of it to find it by."""
    return repr(something)[:2_000]
