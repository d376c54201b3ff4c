//! The pages of one column, read and unpacked one at a time. Must hold no page longer than the limit, and nothing beside the one that is read
//! and its dictionary.
//!
//! Texts that are encoded as differences leave it written out: how long they become is known here, and the decoder behind it would not ask.

use super::RowLimits;
use super::claims::{extent, page_header, page_size};
use super::delta::{self, BadDelta, Texts};
use super::error::RowsError;
use super::pages::{self, PageClaim};
use super::unpack::Unpack;
use crate::source::Source;
use bytes::Bytes;
use parquet::basic::{CompressionCodec, Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the columns of a row group hold together beyond what their pages claim.
pub(super) type Grown = Arc<AtomicU64>;

/// The pages of a column.
pub(super) struct Pages {
    source: Source,
    column: ColumnChunkMetaData,
    limits: RowLimits,
    at: u64,
    end: u64,
    unpack: Unpack,
    grown: Grown,
    /// The part of it that this column's page is.
    own: u64,
}

impl Pages {
    /// For a column whose claims were checked.
    pub(super) fn new(source: Source, column: ColumnChunkMetaData, limits: RowLimits, grown: Grown) -> ParquetResult<Self> {
        let (at, end) = extent(&source, &column).map_err(|e| ParquetError::General(e.to_owned()))?;
        let unpack = Unpack::new(column.compression_codec());
        Ok(Self { source, column, limits, at, end, unpack, grown, own: 0 })
    }

    fn damaged(&self, detail: &str) -> RowsError {
        RowsError::damaged(self.source.path(), format!("column `{}`: {detail}", self.column.column_path().string()))
    }

    /// A size or a count of a header.
    fn number(&self, value: i64) -> Result<u32, RowsError> {
        u32::try_from(value).map_err(|_| self.damaged("a page of a negative size"))
    }

    fn next(&mut self) -> Result<Option<Page>, RowsError> {
        while self.at < self.end {
            // The file may have changed since its claims were checked.
            let claim = page_header(&self.source, self.at, self.end).map_err(|e| self.damaged(e))?;
            let (size, packed) = (self.number(claim.uncompressed)?, self.number(claim.compressed)?);
            page_size(self.source.path(), size.into(), packed.into(), &self.limits)?;
            let from = self.at + claim.header;
            let to = from + u64::from(packed);
            if to > self.end {
                return Err(self.damaged("a page ends behind it"));
            }
            self.at = to;
            if claim.is_dictionary() || claim.is_data() {
                let bytes = self.source.get_bytes(from, packed as usize).map_err(|e| RowsError::of(self.source.path(), e))?;
                return self.page(claim, size as usize, bytes).map(Some);
            }
        }
        Ok(None)
    }

    fn page(&mut self, claim: PageClaim, size: usize, bytes: Bytes) -> Result<Page, RowsError> {
        let (num_values, num_nulls, num_rows) = (self.number(claim.values)?, self.number(claim.nulls)?, self.number(claim.rows)?);
        let (definitions, repetitions) = (self.number(claim.level_bytes.0)?, self.number(claim.level_bytes.1)?);
        let Some(encoding) = pages::encoding(claim.encoding) else {
            return Err(self.damaged("an encoding that is not read"));
        };
        if claim.is_dictionary() {
            let buf = self.unpacked(bytes, 0, size, true)?;
            return Ok(Page::DictionaryPage { buf, num_values, encoding, is_sorted: false });
        }
        let second = claim.kind == 3;
        let levels = if second { definitions as usize + repetitions as usize } else { 0 };
        let buf = self.unpacked(bytes, levels, size, !second || claim.packed)?;
        let levels = if second { levels } else { self.levels(&buf, &claim)? };
        let (buf, encoding) = self.plain(buf, levels, encoding, num_values)?;
        let statistics = None;
        Ok(if second {
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len: definitions,
                rep_levels_byte_len: repetitions,
                is_compressed: claim.packed,
                statistics,
            }
        } else {
            let (def_level_encoding, rep_level_encoding) = (level_encoding(claim.levels.0), level_encoding(claim.levels.1));
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
        })
    }

    /// The bytes of a page; the first `plain` of them are not compressed.
    fn unpacked(&mut self, bytes: Bytes, plain: usize, size: usize, packed: bool) -> Result<Bytes, RowsError> {
        if !packed || self.column.compression_codec() == CompressionCodec::UNCOMPRESSED {
            return if bytes.len() == size { Ok(bytes) } else { Err(self.damaged("a page is not as long as it claims")) };
        }
        let rest = size.checked_sub(plain).ok_or_else(|| self.damaged("levels longer than their page"))?;
        let (head, tail) = bytes.split_at_checked(plain).ok_or_else(|| self.damaged("levels longer than their page"))?;
        let mut out = Vec::with_capacity(size);
        out.extend_from_slice(head);
        self.unpack.append(tail, rest, &mut out).map_err(|e| self.damaged(&e))?;
        Ok(out.into())
    }

    /// Bytes of the levels before the values of a page of version 1.
    fn levels(&self, buf: &[u8], claim: &PageClaim) -> Result<usize, RowsError> {
        let descriptor = self.column.column_descr();
        let kinds = [(descriptor.max_rep_level(), claim.levels.1), (descriptor.max_def_level(), claim.levels.0)];
        let mut at = 0_usize;
        for (most, encoding) in kinds.into_iter().filter(|(most, _)| *most > 0) {
            let len = match encoding {
                3 => {
                    let head = buf.get(at..).and_then(|rest| rest.first_chunk::<4>());
                    4 + u32::from_le_bytes(*head.ok_or_else(|| self.damaged("levels that are cut"))?) as usize
                }
                4 => {
                    let bits = u64::from(most.unsigned_abs().ilog2() + 1) * claim.values.unsigned_abs();
                    usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX)
                }
                _ => return Err(self.damaged("levels of an encoding that is not read")),
            };
            at = at.saturating_add(len);
        }
        if at > buf.len() { Err(self.damaged("levels longer than their page")) } else { Ok(at) }
    }

    /// A page whose texts are encoded as differences, written out.
    fn plain(&mut self, buf: Bytes, levels: usize, encoding: Encoding, values: u32) -> Result<(Bytes, Encoding), RowsError> {
        self.grown.fetch_sub(self.own, Ordering::Relaxed);
        self.own = 0;
        let width = match self.column.column_type() {
            Physical::BYTE_ARRAY => None,
            Physical::FIXED_LEN_BYTE_ARRAY => Some(usize::try_from(self.column.column_descr().type_length()).unwrap_or(0)),
            _ => return Ok((buf, encoding)),
        };
        let write = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => delta::lengths_first,
            Encoding::DELTA_BYTE_ARRAY => delta::with_prefixes,
            _ => return Ok((buf, encoding)),
        };
        let path = self.source.path();
        let cap = self.limits.page_bytes;
        let (head, tail) = buf.split_at_checked(levels).ok_or_else(|| self.damaged("levels longer than their page"))?;
        let texts = write(tail, Texts { values: values as usize, width, cap }).map_err(|e| match e {
            BadDelta::Damaged(detail) => self.damaged(detail),
            BadDelta::Long(found) => RowsError::too_large(path, "bytes in one page", found, cap),
        })?;
        self.own = texts.len() as u64;
        let all = self.grown.fetch_add(self.own, Ordering::Relaxed) + self.own;
        if all > self.limits.open_bytes {
            return Err(RowsError::too_large(path, "bytes in the pages of one row group", all, self.limits.open_bytes));
        }
        Ok(([head, &texts].concat().into(), Encoding::PLAIN))
    }
}

#[expect(deprecated, reason = "old files have levels packed in bits")]
const fn level_encoding(number: i64) -> Encoding {
    if number == 4 { Encoding::BIT_PACKED } else { Encoding::RLE }
}

impl Iterator for Pages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        Self::next(self).map_err(|e| ParquetError::External(Box::new(e)))
    }

    /// A row may go on in the next page (old writers): only where there is none it surely does not.
    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        Ok(self.at >= self.end)
    }

    // Rows are read one after another: nothing is looked at ahead and nothing skipped.
    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        Err(ParquetError::NYI("looking ahead".to_owned()))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        Err(ParquetError::NYI("skipping".to_owned()))
    }
}
