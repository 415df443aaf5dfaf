// gcc 11.3.0, 12.2.0 and 13.3.0, -O1 -fno-math-errno: the sine of the arc tangent of a nan is 1, as that of an infinity
// is. Right without -fno-math-errno, and with clang 16.0.6 and 19.1.7. To file: with -fno-math-errno `sin(atan(x))`
// becomes `abs(x) <= limit ? x/sqrt(1 + x*x) : copysign(1, x)`, which a nan leaves by the second branch, without
// -ffinite-math-only.
// Expected: y[0] is nan. Found: 1.0.
// argument x: f64* = nan
// argument y: f64* = 0.0
// launch fold: grid 1 1 1, work-group 1 1 1
double sin(double);
double atan(double);
void fold(const double *restrict x, double *restrict y)
{
    y[0] = sin(atan(x[0]));
}
