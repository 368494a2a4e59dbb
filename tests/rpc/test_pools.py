"""What a pool says of what it has to do."""

from __future__ import annotations

import threading

from sidecar.rpc.pools import Pool


def test_who_waits_for_a_pool_goes_on_when_its_last_work_is_done() -> None:
    """And at once where it has nothing to do; after the time that was given where it does not end."""
    with Pool("calls", 2, 0) as pool:
        pool.wait_until_idle(30)
        ending = [threading.Event(), threading.Event()]
        for each in ending:
            pool.submit(each.wait, 30)
        pool.wait_until_idle(0.01)
        assert pool.count == 2
        gone_on = threading.Event()

        def wait() -> None:
            pool.wait_until_idle(30)
            gone_on.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        ending[0].set()
        assert not gone_on.is_set()
        ending[1].set()
        assert gone_on.wait(10)
        assert pool.count == 0
        waiting.join()
