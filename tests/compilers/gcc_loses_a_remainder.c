// gcc 11.3.0 -O2 -fno-tree-pre -fno-gcse -fselective-scheduling2 -ftrapv -fno-if-conversion: of two remainders, one of
// the other, the second one is not corrected to that of a division that rounds down. Right without any one of these
// options, with gcc 12.2.0 and with clang 16.0.6. To file: -fselective-scheduling2 with -ftrapv computes `a % b` and
// leaves out the sum with `b` that `a % b != 0 && (a < 0) != (b < 0)` asks for.
// Expected: big[0] is -1104. Found: -304.
// argument big: i64* = -656, 53, -352
// launch sample: grid 1 1 1, work-group 1 1 1
#include <stdint.h>
static inline int64_t floor_mod(const int64_t a, const int64_t b)
{
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
void sample(int64_t *restrict big)
{
    for (int32_t i = 0; i < 3; ++i) {
        int64_t next = 9223372036854775807LL;
        if (i < 2) {
            next = (int64_t)8*floor_mod(floor_mod(big[0], 1000), -100);
        }
        big[i] += next;
    }
}
