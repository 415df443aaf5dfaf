"""The generators of random numbers of Salmon et al. 2011 that Loopy calls, as functions of the language."""

from __future__ import annotations

#: Ten rounds of products, whose halves are mixed with the key and with each other.
PHILOX = """\
function philox4x32
  arg ctr: u32[4] in
  arg key: u32[2] in
  arg drawn: u32[4] inout
  for k in 0..4
    drawn[k] = ctr[k]
  for turn in 0..10
    let left = u64(drawn[0])*3528531795
    let right = u64(drawn[2])*3449720151
    let second = drawn[1]
    let fourth = drawn[3]
    drawn[0] = bit_xor(u32(shr(right, 32)), bit_xor(second, key[0] + u32(turn)*2654435769))
    drawn[1] = u32(right)
    drawn[2] = bit_xor(u32(shr(left, 32)), bit_xor(fourth, key[1] + u32(turn)*3144134277))
    drawn[3] = u32(left)
"""
THREEFRY = """\
function threefry4x32
  arg ctr: u32[4] in
  arg key: u32[4] in
  arg drawn: u32[4] inout
  temp keys: u32[5] private
  for k in 0..4
    keys[k] = key[k]
    drawn[k] = ctr[k] + key[k]
  keys[4] = bit_xor(466688986, bit_xor(bit_xor(key[0], key[1]), bit_xor(key[2], key[3])))
  for s in 0..5
{rounds}    for l in 0..4
      drawn[l] = drawn[l] + keys[(s + 1 + l) mod 5]
    drawn[3] = drawn[3] + u32(s + 1)
"""
#: By how many bits each of eight rounds rotates.
ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
#: The generators; those of other widths are refused.
NAMES = ("philox4x32", "threefry4x32")
#: The scale of a word of 32 bits.
SCALE = "2.3283064365386963e-10"


def function(name: str) -> str:
    """The text of `philox4x32` or `threefry4x32`."""
    return PHILOX if name == "philox4x32" else THREEFRY.format(rounds="".join(map(threefry_round, range(4))))


def threefry_round(number: int) -> str:
    """A round of the first four, and of the next ones."""
    lines = []
    for place, (into, of) in enumerate(((0, 1), (2, 3)) if number % 2 == 0 else ((0, 3), (2, 1))):
        bits = f"select(s mod 2 == 0, {ROTATIONS[number][place]}, {ROTATIONS[number + 4][place]})"
        turned = f"bit_or(shl(drawn[{of}], {bits}), shr(drawn[{of}], 32 - {bits}))"
        lines.append(f"drawn[{into}] = drawn[{into}] + drawn[{of}]")
        lines.append(f"drawn[{of}] = bit_xor({turned}, drawn[{into}])")
    return "".join(f"    {line}\n" for line in lines)
