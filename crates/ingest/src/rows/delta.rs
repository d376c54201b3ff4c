//! Texts that are encoded as differences, written out plainly. Must know how long the result is before any of it is written: a few bytes can
//! claim that each of a million texts begins as a long one does.
//!
//! Apache Parquet format, `Encodings.md`: DELTA_BINARY_PACKED (5), DELTA_LENGTH_BYTE_ARRAY (6), DELTA_BYTE_ARRAY (7).

/// Why texts cannot be written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadDelta {
    /// The bytes contradict themselves.
    Damaged(&'static str),
    /// So many bytes they would become.
    Long(u64),
}

/// What the values of a page are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Texts {
    /// Most values, as the page claims.
    pub(super) values: usize,
    /// Bytes of each, where all have as many: they are written without their length then.
    pub(super) width: Option<usize>,
    /// Most bytes of the result.
    pub(super) cap: u64,
}

/// Writes out texts whose lengths stand before all of them.
pub(super) fn lengths_first(bytes: &[u8], texts: Texts) -> Result<Vec<u8>, BadDelta> {
    let (lengths, used) = integers(bytes, texts)?;
    write(&[], &lengths, bytes.get(used..).unwrap_or_default(), texts)
}

/// Writes out texts each of which says how much of the one before it begins it.
pub(super) fn with_prefixes(bytes: &[u8], texts: Texts) -> Result<Vec<u8>, BadDelta> {
    let (prefixes, used) = integers(bytes, texts)?;
    let rest = bytes.get(used..).unwrap_or_default();
    let (suffixes, used) = integers(rest, texts)?;
    if prefixes.len() != suffixes.len() {
        return Err(BadDelta::Damaged("as many prefixes as texts are needed"));
    }
    write(&prefixes, &suffixes, rest.get(used..).unwrap_or_default(), texts)
}

/// `prefixes` is empty, or has one for each suffix.
fn write(prefixes: &[u32], suffixes: &[u32], bytes: &[u8], texts: Texts) -> Result<Vec<u8>, BadDelta> {
    let prefix = |at: usize| prefixes.get(at).copied().unwrap_or(0);
    let head = if texts.width.is_some() { 0 } else { 4 };
    let (mut all, mut taken, mut before) = (0_u64, 0_u64, 0_u64);
    for (at, suffix) in suffixes.iter().enumerate() {
        let len = u64::from(prefix(at)) + u64::from(*suffix);
        if u64::from(prefix(at)) > before {
            return Err(BadDelta::Damaged("a text shares more with the one before it than that is long"));
        }
        if texts.width.is_some_and(|width| width as u64 != len) {
            return Err(BadDelta::Damaged("a value has another width than its column"));
        }
        (taken, before) = (taken + u64::from(*suffix), len);
        all += head + len;
    }
    if taken > bytes.len() as u64 {
        return Err(BadDelta::Damaged("texts are longer than the bytes that are there"));
    }
    if all > texts.cap {
        return Err(BadDelta::Long(all));
    }
    let mut out = Vec::with_capacity(all as usize);
    let (mut from, mut last) = (0_usize, 0_usize);
    for (at, suffix) in suffixes.iter().enumerate() {
        let (prefix, suffix) = (prefix(at) as usize, *suffix as usize);
        if head > 0 {
            out.extend_from_slice(&((prefix + suffix) as u32).to_le_bytes());
        }
        let start = out.len();
        out.extend_from_within(last..last + prefix);
        out.extend_from_slice(bytes.get(from..from + suffix).unwrap_or_default());
        (from, last) = (from + suffix, start);
    }
    Ok(out)
}

/// Numbers that are lengths, and how many bytes they take.
fn integers(bytes: &[u8], texts: Texts) -> Result<(Vec<u32>, usize), BadDelta> {
    const SHORT: BadDelta = BadDelta::Damaged("differences that are cut");
    let mut at = 0;
    let (block, parts, count) = (varint(bytes, &mut at)?, varint(bytes, &mut at)?, varint(bytes, &mut at)?);
    let mut value = zigzag(varint(bytes, &mut at)?);
    if block == 0
        || parts == 0
        || !block.is_multiple_of(128)
        || !block.is_multiple_of(parts)
        || !(block / parts).is_multiple_of(32)
    {
        return Err(BadDelta::Damaged("blocks of a size that the format does not have"));
    }
    let (parts, each) = (parts as usize, (block / parts) as usize);
    if count > texts.values as u64 {
        return Err(BadDelta::Damaged("more differences than the page has values"));
    }
    // Each takes four bytes here, and four more in what is written.
    if count.saturating_mul(4) > texts.cap {
        return Err(BadDelta::Long(count.saturating_mul(4)));
    }
    let count = count as usize;
    let mut out = Vec::with_capacity(count);
    let mut push = |value: i64| -> Result<(), BadDelta> {
        let length = i32::try_from(value).ok().and_then(|v| u32::try_from(v).ok());
        out.push(length.ok_or(BadDelta::Damaged("a length that none is"))?);
        Ok(())
    };
    let mut left = count;
    if left > 0 {
        push(value)?;
        left -= 1;
    }
    while left > 0 {
        let least = zigzag(varint(bytes, &mut at)?);
        let widths = bytes.get(at..).and_then(|rest| rest.get(..parts)).ok_or(SHORT)?;
        at += parts;
        for width in widths {
            if left == 0 {
                break;
            }
            let width = usize::from(*width);
            if width > 64 {
                return Err(BadDelta::Damaged("a difference wider than 64 bits"));
            }
            let len = each / 8 * width;
            let packed = bytes.get(at..).and_then(|rest| rest.get(..len)).ok_or(SHORT)?;
            at += len;
            for n in 0..left.min(each) {
                value = value.wrapping_add(least).wrapping_add(bits(packed, n * width, width) as i64);
                push(value)?;
            }
            left = left.saturating_sub(each);
        }
    }
    Ok((out, at))
}

/// `width` bits from bit `from`, the lowest first.
fn bits(packed: &[u8], from: usize, width: usize) -> u64 {
    let (first, shift) = (from / 8, from % 8);
    let bytes = packed.get(first..).unwrap_or_default().iter().take(9).enumerate();
    let wide = bytes.fold(0_u128, |wide, (n, byte)| wide | u128::from(*byte) << (8 * n));
    (wide >> shift & ((1_u128 << width) - 1)) as u64
}

fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, BadDelta> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = bytes.get(*at).copied().ok_or(BadDelta::Damaged("differences that are cut"))?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(BadDelta::Damaged("a number without end"))
}

const fn zigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lengths in blocks of 128 in four parts, every difference in `width` bits above `least`.
    fn packed(values: &[i64], least: i64, width: u8) -> Vec<u8> {
        let raw = |value: i64| ((value << 1) ^ (value >> 63)) as u64;
        let mut out = vec![0x80, 0x01, 0x04];
        let put = |mut value: u64, out: &mut Vec<u8>| loop {
            let byte = (value & 0x7f) as u8;
            value >>= 7;
            out.push(if value == 0 { byte } else { byte | 0x80 });
            if value == 0 {
                break;
            }
        };
        put(values.len() as u64, &mut out);
        put(raw(values.first().copied().unwrap_or(0)), &mut out);
        let steps: Vec<u64> = values.windows(2).map(|w| (w[1] - w[0] - least) as u64).collect();
        for block in steps.chunks(128) {
            put(raw(least), &mut out);
            let parts: Vec<&[u64]> = block.chunks(32).collect();
            out.extend((0..4).map(|n| if n < parts.len() { width } else { 0 }));
            for part in parts {
                let mut bytes = vec![0_u8; 4 * usize::from(width)];
                for (n, step) in part.iter().enumerate() {
                    for bit in 0..usize::from(width) {
                        let at = n * usize::from(width) + bit;
                        bytes[at / 8] |= ((step >> bit & 1) as u8) << (at % 8);
                    }
                }
                out.extend(bytes);
            }
        }
        out
    }

    const TEXTS: Texts = Texts { values: 1_000, width: None, cap: 1 << 16 };

    fn plain(texts: &[&str]) -> Vec<u8> {
        texts.iter().flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()).collect()
    }

    #[test]
    fn texts_are_written_out() {
        let bytes = [packed(&[5, 0, 3], -8, 5), b"abcdexyz".to_vec()].concat();
        assert_eq!(lengths_first(&bytes, TEXTS), Ok(plain(&["abcde", "", "xyz"])));
        let bytes = [packed(&[0, 2, 0], -4, 4), packed(&[3, 1, 2], -4, 4), b"abcXyz".to_vec()].concat();
        assert_eq!(with_prefixes(&bytes, TEXTS), Ok(plain(&["abc", "abX", "yz"])));
        let fixed = Texts { width: Some(3), ..TEXTS };
        let bytes = [packed(&[0, 2], 0, 2), packed(&[3, 1], -2, 2), b"abcX".to_vec()].concat();
        assert_eq!(with_prefixes(&bytes, fixed), Ok(b"abcabX".to_vec()));
        assert_eq!(lengths_first(&packed(&[], 0, 0), TEXTS), Ok(vec![]));
    }

    #[track_caller]
    fn refused(found: Result<Vec<u8>, BadDelta>, expected: &str) {
        match found {
            Err(BadDelta::Damaged(why)) => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}, expected {expected}"),
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        refused(lengths_first(&[packed(&[9], 0, 0), b"short".to_vec()].concat(), TEXTS), "longer than the bytes");
        refused(lengths_first(&packed(&[-1], 0, 0), TEXTS), "a length that none is");
        refused(lengths_first(&packed(&[i64::from(i32::MAX) + 1], 0, 0), TEXTS), "a length that none is");
        refused(lengths_first(&packed(&[0; 2], 0, 0), Texts { values: 1, ..TEXTS }), "more differences");
        refused(lengths_first(&[0x81, 0x01, 0x04, 0x00, 0x00], TEXTS), "blocks of a size");
        refused(lengths_first(&packed(&[0; 40], 0, 7)[..20], TEXTS), "cut");
        refused(lengths_first(&[0xff; 20], TEXTS), "without end");
        let prefix = [packed(&[0, 4], 0, 3), packed(&[3, 0], -3, 1), b"abc".to_vec()].concat();
        refused(with_prefixes(&prefix, TEXTS), "shares more");
        let widths = [packed(&[0, 1], 0, 1), packed(&[3, 0], -3, 1), b"abc".to_vec()].concat();
        refused(with_prefixes(&widths, Texts { width: Some(3), ..TEXTS }), "another width");
    }

    // Each text is as the long one before it: nothing is added, and all of them together are long.
    #[test]
    fn texts_that_grow_without_bytes_meet_the_cap() {
        let mut prefixes = vec![1_000; 500];
        prefixes[0] = 0;
        let mut suffixes = vec![0; 500];
        suffixes[0] = 1_000;
        let bytes = [packed(&prefixes, 0, 10), packed(&suffixes, -1_000, 10), vec![b'x'; 1_000]].concat();
        assert_eq!(with_prefixes(&bytes, TEXTS), Err(BadDelta::Long(502_000)));
        assert_eq!(with_prefixes(&bytes, Texts { cap: 502_000, ..TEXTS }).map(|out| out.len()), Ok(502_000));
        let nothing = packed(&vec![0; 900], 0, 0);
        assert_eq!(lengths_first(&nothing, Texts { cap: 3_599, ..TEXTS }), Err(BadDelta::Long(3_600)));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let head = [&[0x80, 0x01, 0x04][..], &bytes].concat();
            for bytes in [&bytes, &head] {
                let _ = lengths_first(bytes, TEXTS);
                let _ = with_prefixes(bytes, TEXTS);
            }
        }
    }
}
