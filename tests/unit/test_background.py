"""What goes on in the background says what keeps it from going on, once."""

import asyncio

from ledger.background import Outage, in_background
from ledger.errors import LedgerError


def test_an_outage_is_said_once_and_the_next_one_again(caplog):
    outage = Outage("some work")

    for fault in (LedgerError("first\nand more"), OSError(24, "second")):
        outage.say(fault)
    outage.end()
    outage.say(OSError(24, "third"))

    assert [record.name for record in caplog.records] == ["thought-ledger"] * 2
    assert caplog.messages == [
        "some work has to wait and tries again: first",
        "some work has to wait and tries again: [Errno 24] third",
    ]


def test_a_bug_that_ends_a_task_is_on_the_log_with_its_traceback(caplog):
    async def fail():
        raise ZeroDivisionError

    async def go_on():
        await asyncio.wait([in_background(fail())])

    asyncio.run(go_on())

    (record,) = caplog.records
    assert record.exc_info[0] is ZeroDivisionError


def test_a_task_that_is_cancelled_says_nothing(caplog):
    async def cancel():
        task = in_background(asyncio.Event().wait())
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(cancel())

    assert not caplog.records
