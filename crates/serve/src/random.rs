//! Random names and keys from the system. The only source of chance in this crate; nothing a session computes depends on it.

/// 32 letters and digits without those that are taken for each other, so that one is five bits.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Random letters, five bits each.
pub(crate) fn letters(count: usize) -> Result<String, getrandom::Error> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| LETTERS[usize::from(byte & 31)] as char).collect())
}

/// A random key.
pub(crate) fn key() -> Result<[u8; 32], getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_plain_letters_and_do_not_repeat() {
        let (a, b) = (letters(26).unwrap(), letters(26).unwrap());
        assert!(a.len() == 26 && a.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
        assert_ne!(a, b);
        assert_ne!(key().unwrap(), key().unwrap());
    }
}
