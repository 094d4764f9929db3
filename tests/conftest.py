"""How tests run here: Hypothesis with the same examples every time, not judged by the clock."""

import signal

from hypothesis import HealthCheck, settings

# Under nohup every process that a test starts would ignore it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile(
    "ledger", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ledger")
