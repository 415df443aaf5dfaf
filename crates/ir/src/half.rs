//! Numbers of 16 bits, in which nothing is computed: binary16 of IEEE 754, and the upper half of
//! binary32 (`bf16`). Both are rounded to the nearest, ties to even.

use std::fmt;

/// An element of type `f16`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// An element of type `bf16`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl fmt::Debug for F16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&f32::from(*self), f)
    }
}

impl fmt::Display for F16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&f32::from(*self), f)
    }
}

impl fmt::Display for Bf16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&f32::from(*self), f)
    }
}

impl fmt::Debug for Bf16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&f32::from(*self), f)
    }
}

/// The exponents of `f32` and `f16` differ by this, in places of the mantissa of `f32`.
const REBIAS: u32 = 112 << 23;

impl From<f32> for F16 {
    fn from(x: f32) -> Self {
        let (bits, sign) = (x.to_bits() & 0x7FFF_FFFF, (x.to_bits() >> 16) as u16 & 0x8000);
        let size = match bits {
            0x7F80_0001.. => 0x7E00,
            // from 65520 on
            0x477F_F000..=0x7F80_0000 => 0x7C00,
            // below 2^-14: the last place of 0.5 is 2^-24, the smallest number
            0..0x3880_0000 => (f32::from_bits(bits) + 0.5).to_bits() as u16,
            _ => ((bits + 0xFFF + (bits >> 13 & 1) - REBIAS) >> 13) as u16,
        };
        Self(sign | size)
    }
}

impl From<F16> for f32 {
    fn from(F16(bits): F16) -> Self {
        let (size, sign) = (u32::from(bits & 0x7FFF), u32::from(bits & 0x8000) << 16);
        let value = match size {
            0x7C00.. => Self::from_bits(0x7F80_0000 | (size & 0x3FF) << 13),
            0x400..=0x7BFF => Self::from_bits((size << 13) + REBIAS),
            _ => size as Self * Self::from_bits(0x3380_0000),
        };
        Self::from_bits(sign | value.to_bits())
    }
}

impl From<f32> for Bf16 {
    fn from(x: f32) -> Self {
        let bits = x.to_bits();
        let rounded =
            if x.is_nan() { bits | 0x40_0000 } else { bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) };
        Self((rounded >> 16) as u16)
    }
}

impl From<Bf16> for f32 {
    fn from(Bf16(bits): Bf16) -> Self {
        Self::from_bits(u32::from(bits) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number is read back, and what lies between two goes to the nearer, in the middle to the even
    /// one.
    #[test]
    fn numbers_round_to_the_nearest() {
        for bits in 0..0x7BFF_u16 {
            let [low, high] = [bits, bits + 1].map(|b| f32::from(F16(b)));
            assert!(low < high && F16::from(low) == F16(bits) && F16::from(-low) == F16(bits | 0x8000));
            let middle = (low + high) / 2.0;
            assert_eq!(F16::from(middle), F16(bits + (bits & 1)), "{bits}");
            assert_eq!(F16::from(f32::from_bits(middle.to_bits() - 1)), F16(bits), "{bits}");
            assert_eq!(F16::from(f32::from_bits(middle.to_bits() + 1)), F16(bits + 1), "{bits}");
        }
        for bits in 0..0x7F7F_u16 {
            let middle = f32::from_bits(u32::from(bits) << 16 | 0x8000);
            assert_eq!(Bf16::from(f32::from(Bf16(bits))), Bf16(bits));
            assert_eq!(Bf16::from(middle), Bf16(bits + (bits & 1)));
            assert_eq!(Bf16::from(-f32::from_bits(middle.to_bits() + 1)), Bf16((bits + 1) | 0x8000));
        }
        assert_eq!(F16::from(65519.0), F16(0x7BFF));
        assert_eq!([65520.0, f32::INFINITY].map(F16::from), [F16(0x7C00); 2]);
        assert_eq!([f32::MAX, f32::INFINITY].map(Bf16::from), [Bf16(0x7F80); 2]);
        assert!(f32::from(F16::from(f32::NAN)).is_nan() && f32::from(Bf16::from(f32::NAN)).is_nan());
        assert_eq!(f32::from(F16(0xFC00)), f32::NEG_INFINITY);
    }
}
