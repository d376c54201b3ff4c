//! The text of a double as the program of v1-v4 printed it, which is that of Python's `repr`. Results of those versions and digests of
//! reference recordings hang on it: it must never change.

/// Python's `repr` of a finite double: the shortest digits, positional from 1e-4 up to below 1e16, else with an exponent
/// of at least two digits.
pub fn double_text(double: f64) -> String {
    let (sign, digits, exponent) = shortest(double);
    if !(-4..16).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs());
    }
    match usize::try_from(exponent) {
        Ok(exponent) if digits.len() > exponent + 1 => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            format!("{sign}{whole}.{fraction}")
        }
        Ok(exponent) => format!("{sign}{digits:0<width$}.0", width = exponent + 1),
        Err(_) => format!("{sign}0.{digits:0>width$}", width = digits.len() + exponent.unsigned_abs() as usize - 1),
    }
}

/// Sign, shortest digits and decimal exponent of a finite double. Where two shortest texts are equally near to it (`.125` to two digits),
/// Python takes the even last digit, as the form of ECMAScript does; the formatting of Rust goes away from zero.
fn shortest(double: f64) -> (&'static str, String, i32) {
    let sign = if double.is_sign_negative() { "-" } else { "" };
    let mut buffer = ryu_js::Buffer::new();
    let text = buffer.format_finite(double.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let Some(last) = digits.rfind(|digit| digit != '0') else { return (sign, "0".to_owned(), 0) };
    let zeros = i32::try_from(all.len() - digits.len()).unwrap_or(0);
    let point = i32::try_from(whole.len()).unwrap_or(0) - 1 - zeros;
    (sign, digits[..=last].to_owned(), point + exponent.parse::<i32>().unwrap_or(0))
}
