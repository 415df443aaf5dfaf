// GCC 11.3, 12.2 and 13.3, x86-64, `-O2 -floop-nest-optimize` (Graphite): two loops become one, although the second reads
// what the first writes in the reverse order; half of the results are of before. Right without that option and without
// `restrict`. To file: no vectoriser is needed.
// Expected: r[0] is 2.0. Found: 1.5.
// argument x: f64* = 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0
// argument d: f64* = 0.5, 0.25, 0.125, 0.75, 1.5, 2.5, 3.5, 4.5
// argument r: f64* = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
// launch last: grid 1 1 1, work-group 1 1 1
void last(double *restrict x, const double *restrict d, double *restrict r)
{
    for (int i = 0; i < 8; ++i) {
        x[7 - i] += d[7 - i];
    }
    for (int i = 0; i < 8; ++i) {
        r[i] = x[i] + d[i];
    }
}
