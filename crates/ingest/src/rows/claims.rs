//! What a file claims of itself, held against its bytes and the limits before any page is decompressed. Must believe nothing: the decoder
//! allocates what is claimed here.

use super::RowLimits;
use super::error::RowsError;
use super::pages::{self, BadHeader, PageClaim};
use super::unpack;
use crate::source::Source;
use parquet::basic::Type as Physical;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use std::path::Path;

/// Longest footer.
const FOOTER_BYTES: u64 = 32 << 20;
/// Longest header of a page: statistics in it may hold whole texts.
const HEADER_BYTES: u64 = 4 << 20;
/// Most entries of a dictionary.
const DICTIONARY: i64 = 4 << 20;
/// Values of a repeated column in one row group that take less than half a byte each.
const SPARSE: u64 = 16 << 20;
/// Bytes by which a page that does not compress may be longer than what it holds.
const SLACK: u64 = 1 << 20;

/// The length of the footer, before it is read.
pub(super) fn footer(source: &Source) -> Result<(), RowsError> {
    let path = source.path();
    let len = source.len();
    let Some(at) = len.checked_sub(8).filter(|_| len >= 12) else {
        return Err(RowsError::damaged(path, "too short for a Parquet file"));
    };
    let tail = source.get_bytes(at, 8).map_err(|e| RowsError::damaged(path, e))?;
    let Some((size, b"PAR1")) = tail.split_first_chunk::<4>() else {
        return Err(RowsError::damaged(path, "it does not end as a Parquet file"));
    };
    let size = u64::from(u32::from_le_bytes(*size));
    if size > at {
        return Err(RowsError::damaged(path, "its footer is longer than the file"));
    }
    if size > FOOTER_BYTES {
        return Err(RowsError::too_large(path, "bytes of footer", size, FOOTER_BYTES));
    }
    Ok(())
}

/// Checks what the pages of a column claim; gives the bytes that are held at a time to read it.
pub(super) fn column_claims(
    source: &Source,
    column: &ColumnChunkMetaData,
    rows: u64,
    limits: &RowLimits,
) -> Result<u64, RowsError> {
    let path = source.path();
    let name = column.column_path().string();
    let damaged = |detail: &str| RowsError::damaged(path, format!("column `{name}`: {detail}"));
    let not_read = |what, found: String| RowsError::NotRead { path: path.to_owned(), column: name.clone(), what, found };
    let codec = column.compression_codec();
    if !unpack::is_read(codec) {
        return Err(not_read("codec", format!("{codec:?}").to_lowercase()));
    }
    let (start, end) = extent(source, column).map_err(damaged)?;
    let bytes = end - start;
    let claimed = u64::try_from(column.uncompressed_size()).map_err(|_| damaged("a negative size"))?;
    let (mut at, mut values, mut held) = (start, 0_u64, 0_u64);
    let (mut dictionary, mut largest) = (0_u64, 0_u64);
    while at < end {
        let page = page_header(source, at, end).map_err(damaged)?;
        let (Ok(size), Ok(packed), Ok(count)) =
            (u64::try_from(page.uncompressed), u64::try_from(page.compressed), u64::try_from(page.values))
        else {
            return Err(damaged("a page of a negative size"));
        };
        page_size(path, size, packed, limits)?;
        held = held.saturating_add(size);
        if held > claimed {
            return Err(damaged(&format!("its pages hold more than the {claimed} bytes it claims")));
        }
        if page.is_dictionary() {
            let width = match column.column_type() {
                Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
                Physical::INT64 | Physical::DOUBLE => 8,
                Physical::INT96 => 12,
                Physical::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.column_descr().type_length()).unwrap_or(0).max(1),
                Physical::BOOLEAN => return Err(damaged("a dictionary of flags")),
            };
            if page.values > DICTIONARY {
                return Err(RowsError::too_large(path, "entries of a dictionary", count, DICTIONARY as u64));
            }
            if count.saturating_mul(width) > size {
                return Err(damaged("its dictionary claims more entries than its bytes can hold"));
            }
            dictionary = size;
        } else if page.is_data() {
            if pages::encoding(page.encoding).is_none() {
                return Err(not_read("encoding", format!("number {}", page.encoding)));
            }
            largest = largest.max(size);
            values = values.saturating_add(count);
        }
        at = at.checked_add(page.header + packed).filter(|next| *next <= end).ok_or_else(|| damaged("a page ends behind it"))?;
    }
    let told = u64::try_from(column.num_values()).unwrap_or(u64::MAX);
    if values != told {
        return Err(damaged(&format!("its pages have {values} values where it claims {told}")));
    }
    let descriptor = column.column_descr();
    if descriptor.max_rep_level() == 0 && values != rows {
        return Err(damaged(&format!("it has {values} values for {rows} rows")));
    }
    let cap = SPARSE.max(bytes.saturating_mul(2));
    if descriptor.max_rep_level() > 0 && values > cap {
        return Err(RowsError::too_large(path, "values of a list column in one row group", values, cap));
    }
    Ok(dictionary.saturating_add(largest))
}

/// Where the pages of a column begin and end.
pub(super) fn extent(source: &Source, column: &ColumnChunkMetaData) -> Result<(u64, u64), &'static str> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let (Ok(start), Ok(bytes)) = (u64::try_from(start), u64::try_from(column.compressed_size())) else {
        return Err("a negative place or size");
    };
    let end = start.checked_add(bytes).filter(|end| *end <= source.len()).ok_or("it lies outside of the file")?;
    Ok((start, end))
}

/// Holds the sizes of one page against the limit.
pub(super) fn page_size(path: &Path, size: u64, packed: u64, limits: &RowLimits) -> Result<(), RowsError> {
    let cap = limits.page_bytes;
    let found = size.max(packed.saturating_sub(SLACK));
    if found > cap { Err(RowsError::too_large(path, "bytes in one page", found, cap)) } else { Ok(()) }
}

/// The header of the page at `at`.
pub(super) fn page_header(source: &Source, at: u64, end: u64) -> Result<PageClaim, &'static str> {
    let mut window = 1024;
    loop {
        let take = (end - at).min(window);
        let bytes = source.get_bytes(at, take as usize).map_err(|_| "a page that cannot be read")?;
        match pages::header(&bytes) {
            Ok(page) => return Ok(page),
            Err(BadHeader::Short) if take == window && window < HEADER_BYTES => window *= 16,
            Err(_) => return Err("a page whose header is damaged"),
        }
    }
}
