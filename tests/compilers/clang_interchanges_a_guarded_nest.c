// clang 19.1.7 -O1 -mllvm -enable-loopinterchange: a loop inside a guard of the loop around it is left out, with all
// that it stores. The same with -O3 -fno-unroll-loops. Right without that option, and with clang 16.0.6. To file:
// -enable-loopinterchange deletes the stores of a nest whose outer loop guards the inner one by its own counter.
// Expected: result[0] is -0.005859375. Found: whatever `work` holds.
// argument x: f64* = -0.01171875, 0.0, -0.88671875, -0.328125, -0.3359375, 0.59765625, 0.82421875, -0.62890625, 0.01171875
// argument result: f64* = nan, nan, nan, nan, nan, nan, nan, nan, nan
// launch halve: grid 1 1 1, work-group 1 1 1
#include <stdint.h>
void halve(double *restrict x, double *restrict result)
{
    double work[9];
    for (int32_t c = 0; c < 18; ++c) {
        if (c) {
            for (int32_t i = 0; i < 9; ++i) {
                work[i] = x[i]*0.5;
            }
        }
    }
    for (int32_t i = 0; i < 9; ++i) {
        result[i] = work[i];
    }
}
