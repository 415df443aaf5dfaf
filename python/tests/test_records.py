"""Records: arrays of NumPy's structures, and arrays for each field."""

import numpy as np
import pytest

import kingpost

BEST = np.dtype([("value", "f8"), ("at", "i8")])
HEAD = """
record Best(value: f64, at: i64)
operator argmin(a: Best, b: Best) := select(b.value < a.value or b.value == a.value and b.at < a.at, b, a) identity Best(inf, 9223372036854775807) {associative, commutative, no_nan}
param n: i32
"""
ROWS = f"""kernel rows
{HEAD}arg x: f64[n, 8] in
arg best: Best[n] out

for i in 0..n
  best[i] = argmin(j in 0..8: Best(x[i, j], j))
"""
OLDER = f"""kernel older
{HEAD}arg new: Best[n] in
arg best: Best[n] inout

for i in 0..n
  best[i] argmin= new[i]
"""
DEVICES = sorted({"c", "opencl"} & set(kingpost.devices()))


@pytest.mark.parametrize("device", DEVICES)
def test_results_are_structures(device):
    x = np.random.default_rng(3).random((5, 8))
    best = np.zeros(5, BEST)
    kingpost.compile(ROWS, device)(x=x, best=best)
    assert (best["value"] == x.min(axis=1)).all() and (best["at"] == x.argmin(axis=1)).all()
    fields = {"value": np.zeros(5), "at": np.zeros(5, "i8")}
    rows = kingpost.compile(ROWS, device)
    rows(x=x, best=fields)
    apart = {"best_value": np.zeros(5), "best_at": np.zeros(5, "i8")}
    rows.bind(x=x, **apart)()
    for found in (fields["value"], apart["best_value"]):
        assert (found == best["value"]).all()
    for found in (fields["at"], apart["best_at"]):
        assert (found == best["at"]).all()


def test_structures_are_read_and_written():
    new = np.array([(1.0, 7), (2.0, 3), (0.5, 1)], BEST)
    best = np.array([(1.0, 9), (1.5, 2), (3.0, 0)], BEST)
    older = kingpost.compile(OLDER)
    older.check(new=new, best=best)
    older(new=new, best=best)
    assert best.tolist() == [(1.0, 7), (1.5, 2), (0.5, 1)]
    assert new.tolist() == [(1.0, 7), (2.0, 3), (0.5, 1)]
    # every second structure, in an array of more fields
    more = np.dtype([("weight", "f4"), *BEST.descr])
    wide = np.zeros(6, more)
    wide["weight"], wide["value"] = 2.5, 9.0
    part = wide[::2][["value", "at"]]
    older(new=new, best=part)
    assert wide["value"].tolist() == [1.0, 9.0, 2.0, 9.0, 0.5, 9.0] and (wide["weight"] == 2.5).all()


def test_a_step_keeps_what_becomes_of_structures():
    s = kingpost.Schedule(ROWS)
    s.realise("j")
    s.split("i", 4)
    x = np.random.default_rng(4).random((6, 8))
    best = np.zeros(6, BEST)
    kingpost.compile(s)(x=x, best=best)
    assert (best["at"] == x.argmin(axis=1)).all()


def test_fields_that_do_not_fit_are_refused():
    older = kingpost.compile(OLDER)
    new, best = np.zeros(3, BEST), np.zeros(3, BEST)
    with pytest.raises(kingpost.MissingArgument, match="new_at"):
        older(new={"value": np.zeros(3)}, best=best)
    with pytest.raises(kingpost.UnknownArgument, match="new_weight"):
        older(new={"value": np.zeros(3), "at": np.zeros(3, "i8"), "weight": np.zeros(3)}, best=best)
    with pytest.raises(kingpost.DtypeError, match="new_at"):
        older(new=np.zeros(3, [("value", "f8"), ("at", "f8")]), best=best)
    with pytest.raises(kingpost.ShapeError, match="new"):
        older(new=new[:2], best=best)
    with pytest.raises(kingpost.LayoutError, match="`new` is an array of structures"):
        older.bind(new=new, best=best)
    with pytest.raises(kingpost.UnknownArgument, match="it takes `n`, `new_value`, `best_value`"):
        older(new=new, best=np.zeros(3))
    read_only = best.copy()
    read_only.flags.writeable = False
    with pytest.raises(kingpost.ReadOnlyError, match="`best` is read-only"):
        older(new=new, best=read_only)
    older(new=read_only, best=best)


def test_laws_are_proved_or_sampled():
    proved = "proved, by all 729 orders of its operands"
    assert kingpost.Kernel.parse(ROWS).laws == {"argmin": (["associative", "commutative", "no_nan"], proved)}
    assert kingpost.Kernel.parse("kernel k\narg y: f64 out\n\ns: y = 1.0\n").laws == {}


def test_steps_say_which_laws_they_rely_on():
    s = kingpost.Schedule(ROWS)
    s.realise_reduction("j", in_place=True)
    s.split("j", 4)
    s.factor_update("s0_update", ["j_o"])
    realised, split, factored = s.steps()
    laws = ("relies on `argmin` being associative and commutative: proved, by all 729 orders of its operands",)
    assert split.laws == () and factored.laws == laws == realised.laws
    assert str(factored).startswith(f"# {factored.operation}\n# {laws[0]}\n\nkernel rows\n")
