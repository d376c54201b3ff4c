//! The page headers of a column, read before any page is decompressed: what they claim is what the decoder will allocate. Must trust
//! nothing and hold nothing but one header.
//!
//! Headers are Thrift structs in compact form (Apache Parquet format, `parquet.thrift`, `PageHeader`). Fields that are not needed are
//! skipped, with every length held against the bytes that are there.

use parquet::basic::Encoding;

/// Nesting of structs, lists and maps in a header.
const DEEPEST: usize = 16;

/// The encoding of values with a number (Apache Parquet format, `parquet.thrift`, `Encoding`); `None` for one that no page of values has.
pub(super) const fn encoding(number: i64) -> Option<Encoding> {
    Some(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return None,
    })
}

/// What a header says of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageClaim {
    /// 0 data, 1 index, 2 dictionary, 3 data of version 2.
    pub(super) kind: i64,
    pub(super) uncompressed: i64,
    pub(super) compressed: i64,
    /// Values, nulls too; entries of a dictionary.
    pub(super) values: i64,
    pub(super) encoding: i64,
    /// Encodings of the levels of a data page: of definitions, of repetitions.
    pub(super) levels: (i64, i64),
    /// Of a data page of version 2: nulls, rows, bytes of the definition levels and of the repetition levels, which stand before the
    /// values and are never compressed.
    pub(super) nulls: i64,
    pub(super) rows: i64,
    pub(super) level_bytes: (i64, i64),
    /// Whether the values of a data page of version 2 are compressed; they are where nothing is said.
    pub(super) packed: bool,
    /// Bytes of the header itself.
    pub(super) header: u64,
}

impl PageClaim {
    const NONE: Self = Self {
        kind: 0,
        uncompressed: 0,
        compressed: 0,
        values: 0,
        encoding: 0,
        levels: (3, 3),
        nulls: 0,
        rows: 0,
        level_bytes: (0, 0),
        packed: true,
        header: 0,
    };

    pub(super) const fn is_dictionary(&self) -> bool {
        self.kind == 2
    }

    pub(super) const fn is_data(&self) -> bool {
        self.kind == 0 || self.kind == 3
    }
}

/// Why a header cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadHeader {
    /// The bytes end inside of it.
    Short,
    /// It is none.
    Damaged,
}

/// Reads the header at the start of `bytes`.
pub(super) fn header(bytes: &[u8]) -> Result<PageClaim, BadHeader> {
    let mut walk = Walk { bytes, at: 0 };
    let mut claim = PageClaim::NONE;
    walk.fields(0, &mut |walk, field, kind, depth| {
        match (field, kind) {
            (1, 5) => claim.kind = walk.integer()?,
            (2, 5) => claim.uncompressed = walk.integer()?,
            (3, 5) => claim.compressed = walk.integer()?,
            // Data page, dictionary page, data page of version 2: the number of values first, in all of them.
            (5 | 7 | 8, 12) => walk.fields(depth + 1, &mut |walk, inner, kind, depth| {
                match (inner, kind) {
                    (1, 5) => claim.values = walk.integer()?,
                    (2, 5) if field != 8 => claim.encoding = walk.integer()?,
                    (3, 5) if field == 5 => claim.levels.0 = walk.integer()?,
                    (4, 5) if field == 5 => claim.levels.1 = walk.integer()?,
                    (2, 5) => claim.nulls = walk.integer()?,
                    (3, 5) if field == 8 => claim.rows = walk.integer()?,
                    (4, 5) if field == 8 => claim.encoding = walk.integer()?,
                    (5, 5) if field == 8 => claim.level_bytes.0 = walk.integer()?,
                    (6, 5) if field == 8 => claim.level_bytes.1 = walk.integer()?,
                    (7, 1 | 2) if field == 8 => claim.packed = kind == 1,
                    _ => walk.skip(kind, depth)?,
                }
                Ok(())
            })?,
            _ => walk.skip(kind, depth)?,
        }
        Ok(())
    })?;
    claim.header = walk.at as u64;
    Ok(claim)
}

/// What happens with a field: its number, its type, the nesting it stands in.
type OnField<'f> = &'f mut dyn FnMut(&mut Walk<'_>, i64, u8, usize) -> Result<(), BadHeader>;

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, BadHeader> {
        let byte = self.bytes.get(self.at).copied().ok_or(BadHeader::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn unsigned(&mut self) -> Result<u64, BadHeader> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(BadHeader::Damaged)
    }

    /// A number in zigzag form.
    fn integer(&mut self) -> Result<i64, BadHeader> {
        let raw = self.unsigned()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    fn forward(&mut self, bytes: u64) -> Result<(), BadHeader> {
        let left = (self.bytes.len() - self.at) as u64;
        if bytes > left {
            return Err(BadHeader::Short);
        }
        self.at += bytes as usize;
        Ok(())
    }

    fn fields(&mut self, depth: usize, on: OnField<'_>) -> Result<(), BadHeader> {
        if depth > DEEPEST {
            return Err(BadHeader::Damaged);
        }
        let mut last = 0_i64;
        loop {
            let byte = self.byte()?;
            let kind = byte & 0x0f;
            if byte == 0 {
                return Ok(());
            }
            last = match byte >> 4 {
                0 => self.integer()?,
                step => last.saturating_add(i64::from(step)),
            };
            on(self, last, kind, depth)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), BadHeader> {
        if depth > DEEPEST {
            return Err(BadHeader::Damaged);
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.forward(1),
            4..=6 => self.unsigned().map(drop),
            7 => self.forward(8),
            8 => {
                let bytes = self.unsigned()?;
                self.forward(bytes)
            }
            9 | 10 => {
                let head = self.byte()?;
                let items = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
                self.items(items, &[head & 0x0f], depth)
            }
            11 => {
                let items = self.unsigned()?;
                if items == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                self.items(items, &[kinds >> 4, kinds & 0x0f], depth)
            }
            12 => self.fields(depth + 1, &mut |walk, _, kind, depth| walk.skip(kind, depth)),
            _ => Err(BadHeader::Damaged),
        }
    }

    fn items(&mut self, items: u64, kinds: &[u8], depth: usize) -> Result<(), BadHeader> {
        // Every item takes a byte at least.
        if items > (self.bytes.len() - self.at) as u64 {
            return Err(BadHeader::Short);
        }
        for _ in 0..items {
            for kind in kinds {
                // Flags in a list take a byte, as a field they are in the type.
                if matches!(kind, 1 | 2) { self.forward(1)? } else { self.skip(*kind, depth + 1)? }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<(i64, i64, i64, i64, i64), BadHeader>) {
        let found = header(bytes).map(|c| (c.kind, c.uncompressed, c.compressed, c.values, c.encoding));
        assert_eq!(found, expected);
    }

    #[test]
    fn headers_say_sizes_values_and_encoding() {
        // A data page: type 0, 100 bytes, 50 compressed, 7 values in a dictionary encoding (8).
        let data = [0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x64, 0x2c, 0x15, 0x0e, 0x15, 0x10, 0x15, 0x06, 0x15, 0x06, 0x00, 0x00];
        check(&data, Ok((0, 100, 50, 7, 8)));
        check(&data[..9], Err(BadHeader::Short));
        // A dictionary page.
        check(&[0x15, 0x04, 0x15, 0x08, 0x15, 0x08, 0x4c, 0x15, 0x02, 0x15, 0x00, 0x00, 0x00], Ok((2, 4, 4, 1, 0)));
        // Bytes that claim to be longer than all there is, and an unknown type.
        check(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f], Err(BadHeader::Short));
        check(&[0x1e, 0x00], Err(BadHeader::Damaged));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = header(&bytes);
        }

        #[test]
        fn nested_bytes_end(byte in prop::sample::select(vec![0x1c_u8, 0x19, 0x1b, 0xfc, 0xf9]), n in 0_usize..4000) {
            prop_assert!(header(&vec![byte; n]).is_err());
        }
    }
}
