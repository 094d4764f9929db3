"""How Hypothesis runs here: the same examples every time, and no judgement by the clock."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ledger", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ledger")
