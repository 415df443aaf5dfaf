"""Discrete solutions converge to manufactured ones at the order of the textbooks."""

import pytest

pytest.importorskip("ufl")
pytest.importorskip("basix")

import manufactured  # noqa: E402

PROBLEMS = manufactured.problems()
# Between 4 and 8 cells a side orders are not yet those of fine meshes.
SLACK = 0.45


@pytest.mark.parametrize("problem", PROBLEMS, ids=[p.name for p in PROBLEMS])
def test_errors_fall_at_the_order_of_the_textbook(problem: manufactured.Problem) -> None:
    coarse, fine = (manufactured.Discrete(problem, n).errors() for n in (4, 8))
    found = manufactured.orders(coarse, fine, 2)
    short = {name: found[name] for name, order in problem.orders.items() if found[name] < order - SLACK}
    assert not short, (coarse, fine)
    assert found.keys() == problem.orders.keys()


def test_a_linear_function_is_reproduced_through_facets() -> None:
    errors = manufactured.Discrete(manufactured.patch(), 3).errors()
    # sums of some hundred products, times the condition of the matrix
    assert max(errors.values()) < 1e-11, errors
