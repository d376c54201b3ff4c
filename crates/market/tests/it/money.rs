//! Exact money against a decimal crate as the oracle.

use proptest::prelude::*;
use rust_decimal::{Decimal, RoundingStrategy};
use std::str::FromStr as _;
use traderharness_market::money::{decimal, div_round, round_f64};
use traderharness_market::{Cash, Price, Rounding, Shares};

const ALL: [Rounding; 3] = [Rounding::HalfEven, Rounding::HalfUp, Rounding::Down];

pub(crate) fn strategy(rounding: Rounding) -> RoundingStrategy {
    match rounding {
        Rounding::HalfEven => RoundingStrategy::MidpointNearestEven,
        Rounding::HalfUp => RoundingStrategy::MidpointAwayFromZero,
        Rounding::Down => RoundingStrategy::ToZero,
    }
}

/// Integer of `places` decimals.
pub(crate) fn units(value: Decimal, places: u32, rounding: Rounding) -> i64 {
    let rounded = value.round_dp_with_strategy(places, strategy(rounding));
    i64::try_from(
        (rounded * Decimal::from(10_i64.pow(places))).mantissa()
            / 10_i128.pow((rounded * Decimal::from(10_i64.pow(places))).scale()),
    )
    .unwrap()
}

#[test]
fn text_value_of_a_float_decides_the_rounding() {
    // 1.005 is below its text as a float; the text is what the dataset said.
    for (value, places, rounding, expected) in [
        (1.005, 2, Rounding::HalfUp, Some(101)),
        (1.005, 2, Rounding::HalfEven, Some(100)),
        (1.015, 2, Rounding::HalfEven, Some(102)),
        (-1.005, 2, Rounding::HalfUp, Some(-101)),
        (2.675, 2, Rounding::HalfUp, Some(268)),
        (0.29, 2, Rounding::Down, Some(29)),
        (1.1, 1, Rounding::Down, Some(11)),
        (1e-20, 2, Rounding::HalfUp, Some(0)),
        (1e-320, 2, Rounding::HalfUp, Some(0)),
        (0.0, 2, Rounding::HalfUp, Some(0)),
        (-0.0, 2, Rounding::HalfUp, Some(0)),
        (f64::NAN, 2, Rounding::HalfUp, None),
        (f64::INFINITY, 2, Rounding::HalfUp, None),
        (1e15, 2, Rounding::HalfUp, None),
        (999_999_999_999_999.0, 2, Rounding::HalfUp, Some(99_999_999_999_999_900)),
        (999_999_999_999_999.0, 6, Rounding::HalfUp, None),
    ] {
        assert_eq!(decimal(value, places, rounding), expected, "{value} {places} {rounding:?}");
    }
    assert_eq!(round_f64(f64::NAN, 2), None); // complaint NU-1
    assert_eq!(round_f64(2.5, 0), Some(2.0));
    assert_eq!(Price::from_f64_tick(11.115, Rounding::HalfEven), Some(Price(111_200)));
}

proptest! {
    #[test]
    fn rounding_agrees_with_the_oracle(mantissa in -1_000_000_000_i64..1_000_000_000, scale in 0_u32..7, places in 0_u32..5) {
        let exact = Decimal::new(mantissa, scale);
        let value: f64 = exact.to_string().parse().unwrap();
        for rounding in ALL {
            prop_assert_eq!(decimal(value, places, rounding), Some(units(exact, places, rounding)), "{} {} {:?}", exact, places, rounding);
        }
    }

    #[test]
    fn any_float_agrees_with_the_oracle(value in -1e7_f64..1e7, places in 0_u32..5) {
        let exact = Decimal::from_str(&format!("{value:.26}").parse::<f64>().map(|v| format!("{v}")).unwrap()).unwrap();
        for rounding in ALL {
            prop_assert_eq!(decimal(value, places, rounding), Some(units(exact, places, rounding)));
        }
    }

    #[test]
    fn amounts_agree_with_the_oracle(price in 1_i64..100_000_000, shares in 0_i64..10_000_000) {
        for rounding in ALL {
            let exact = Decimal::new(price, 4) * Decimal::from(shares);
            prop_assert_eq!(Price(price).times(Shares(shares), rounding), Cash(units(exact, 2, rounding)));
        }
    }

    #[test]
    fn division_agrees_with_the_oracle(numerator in -1_000_000_000_i64..1_000_000_000, denominator in 1_i64..100_000) {
        for rounding in ALL {
            let whole = div_round(numerator.into(), denominator.into(), rounding);
            let twice = 2 * (i128::from(numerator) - whole * i128::from(denominator));
            // The rest is at most half a unit, or below a whole one towards zero.
            match rounding {
                Rounding::Down => prop_assert!(twice.abs() < 2 * i128::from(denominator) && (twice == 0 || (twice > 0) == (numerator > 0))),
                _ => prop_assert!(twice.abs() <= i128::from(denominator)),
            }
            if twice.abs() == i128::from(denominator) {
                match rounding {
                    Rounding::HalfEven => prop_assert_eq!(whole % 2, 0),
                    Rounding::HalfUp => prop_assert!((twice < 0) == (numerator > 0)),
                    Rounding::Down => {}
                }
            }
        }
    }
}
