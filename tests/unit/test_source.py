"""The ledger is waited for in order: a call that comes as it opens does not overtake others."""

import asyncio
from pathlib import Path

from ledger.database import DatabaseUnavailableError
from ledger.settings import Settings
from mcp_server.source import LedgerSource


class SlowSource(LedgerSource):
    """Opens when it is told to, and opens nothing, or fails."""

    def __init__(self, data_dir: Path, *, fails: bool = False) -> None:
        super().__init__(Settings(data_dir=data_dir))
        self.may_open = asyncio.Event()
        self.tries = 0
        self._fails = fails

    async def _open(self):
        self.tries += 1
        await self.may_open.wait()
        if self._fails:
            raise DatabaseUnavailableError("it is gone")
        return object()


def test_calls_get_the_ledger_in_the_order_they_came(tmp_path):
    async def order() -> list[int]:
        source, order = SlowSource(tmp_path), []

        async def call(number: int) -> None:
            await source.get()
            order.append(number)

        async with asyncio.TaskGroup() as calls:
            for number in range(5):
                calls.create_task(call(number))
            await asyncio.sleep(0)
            source.may_open.set()
            for number in range(5, 40):
                calls.create_task(call(number))
                await asyncio.sleep(0)
        return order

    assert asyncio.run(order()) == list(range(40))


def test_those_who_wait_for_one_opening_fail_with_it(tmp_path):
    async def failures() -> tuple[int, set[type]]:
        source = SlowSource(tmp_path, fails=True)
        waiting = [asyncio.create_task(source.get()) for _ in range(20)]
        await asyncio.sleep(0)
        source.may_open.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        return source.tries, {type(result) for result in results}

    assert asyncio.run(failures()) == (1, {DatabaseUnavailableError})
