import pytest

from gpuviz.commands.workloads import WORKLOADS


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_small_workload_passes_its_own_checks(name):
    results = WORKLOADS[name].run(scale=0.01)

    assert min(results.values()) > 0
