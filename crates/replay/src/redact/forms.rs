//! The forms in which a known secret may come back. Must give no form so short that words of a language would match it.

use std::fmt::Write as _;

/// Shortest text that is searched for.
pub(crate) const SHORTEST: usize = 6;

/// Every form of a secret that is searched for, sorted, each once; none for a text too short to be one.
pub fn forms(secret: &str) -> Vec<String> {
    let secret = secret.trim();
    if secret.len() < SHORTEST {
        return vec![];
    }
    let mut forms = vec![secret.to_owned()];
    let json = serde_json::Value::from(secret).to_string();
    forms.push(json.trim_matches('"').to_owned());
    forms.push(json.trim_matches('"').replace('/', "\\/"));
    for lower in [false, true] {
        forms.push(percent(secret, lower));
        forms.push(hexadecimal(secret, lower));
    }
    for offset in 0..3 {
        let standard = base64_inside(secret.as_bytes(), offset);
        forms.push(standard.replace('+', "-").replace('/', "_"));
        forms.push(standard.replace('/', "\\/"));
        forms.push(percent(&standard, false));
        forms.push(percent(&standard, true));
        forms.push(standard);
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms.sort();
    forms.dedup();
    forms
}

fn percent(text: &str, lower: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = if lower { write!(out, "%{byte:02x}") } else { write!(out, "%{byte:02X}") };
        }
    }
    out
}

fn hexadecimal(text: &str, lower: bool) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = if lower { write!(out, "{byte:02x}") } else { write!(out, "{byte:02X}") };
        out
    })
}

/// The base64 characters that depend on `bytes` alone when these begin `offset` bytes (modulo 3) into the encoded text.
pub(crate) fn base64_inside(bytes: &[u8], offset: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| -> Option<u8> {
        let byte = (at / 8).checked_sub(offset).and_then(|index| bytes.get(index))?;
        Some(byte >> (7 - at % 8) & 1)
    };
    let bits = (offset + bytes.len()) * 8;
    let sextets = (0..bits.div_ceil(6)).map(|n| (0..6).try_fold(0_u8, |value, k| Some(value << 1 | bit(n * 6 + k)?)));
    sextets.flatten().map(|value| char::from(*ALPHABET.get(usize::from(value)).unwrap_or(&b'A'))).collect()
}

/// What a run of base64 characters says, as far as it says anything.
pub(crate) fn base64_decode(run: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(run.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in run {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_keeps_only_what_depends_on_the_secret() {
        assert_eq!(base64_inside(b"abc", 0), "YWJj");
        // "?abc" is P2FiYw==: its first character and half of the second belong to the other text.
        assert_eq!(base64_inside(b"abc", 1), "FiY");
        assert_eq!(base64_inside(b"abc", 2), "hYm");
    }

    #[test]
    fn placeholders_have_no_forms() {
        assert_eq!(forms(" none "), [""; 0]);
        assert!(forms("pa/ss word").contains(&"pa%2fss%20word".to_owned()));
    }

    #[test]
    fn encodings_are_read_back() {
        assert_eq!(base64_decode(b"YWJj"), b"abc");
        assert_eq!(base64_decode(b"P2FiYw=="), b"?abc");
    }
}
