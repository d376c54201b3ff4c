//! Our cache of a dataset: its canonical columns as they lie in memory, one file, loaded several times faster than Parquet.
//!
//! Layout: magic, format number, header length, SHA-256 of the header, header (JSON: self-description, report, directory of columns),
//! then the columns. Every column carries its SHA-256, and the digest of the dataset is computed again from them, so a cache that
//! loads is the dataset it was made from. Reading trusts nothing: every offset, length, order and value is checked.

use crate::canon;
use crate::civil;
use crate::decode::{Decoder, Owned, PIECE};
use crate::error::IngestError;
use crate::load::{Dataset, LoadOptions, OnProgress, load_parts};
use crate::metadata::basis_name;
use crate::report::DatasetReport;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use traderharness_market::store::{BarColumns, DatasetMeta};
use traderharness_market::{Code, Day, PriceBasis, StoreParts};

const MAGIC: [u8; 8] = *b"THCACHE\n";
/// Format written; older ones down to 1 are read.
const FORMAT: u32 = 1;
/// Magic, format, header length, header digest.
const PREFIX: usize = 8 + 4 + 8 + 32;
/// Longest header that is read.
const MAX_HEADER: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    name: String,
    synthetic: bool,
    prices: String,
    digest: String,
    columns: Vec<Entry>,
    report: DatasetReport,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    /// Bytes from the end of the header.
    offset: u64,
    bytes: u64,
    sha256: String,
}

/// Loads a dataset and writes its cache; the cache appears whole or not at all.
///
/// # Errors
/// [`IngestError`] of the load, or of the file system.
pub fn build_cache(
    dataset: &Path,
    cache: &Path,
    options: &LoadOptions,
    progress: OnProgress<'_>,
) -> Result<DatasetReport, IngestError> {
    let (parts, report) = load_parts(dataset, options, progress)?;
    write_cache(&parts, &report, cache)?;
    Ok(report)
}

/// Writes parts and report as a cache: to a temporary file beside it, then renamed.
///
/// # Errors
/// [`IngestError::Io`].
pub fn write_cache(parts: &StoreParts, report: &DatasetReport, path: &Path) -> Result<(), IngestError> {
    let columns = canon::encode(parts);
    let shas: Vec<[u8; 32]> = columns.par_iter().map(|(_, values)| values.sha256()).collect();
    let mut offset = 0_u64;
    let entries: Vec<Entry> = columns
        .iter()
        .zip(&shas)
        .map(|((name, values), sha)| {
            let bytes = values.byte_len() as u64;
            let entry = Entry { name: name.clone(), offset, bytes, sha256: canon::hex(sha) };
            offset += bytes;
            entry
        })
        .collect();
    let listed = columns.iter().zip(&shas).map(|((name, values), sha)| (name.as_str(), values.byte_len() as u64, *sha));
    let header = Header {
        name: parts.meta.name.clone(),
        synthetic: parts.meta.synthetic,
        prices: basis_name(parts.meta.prices).to_owned(),
        digest: canon::digest(parts.meta.synthetic, parts.meta.prices, listed),
        columns: entries,
        report: report.clone(),
    };
    let fail = |source: std::io::Error| IngestError::Io { action: "write", path: path.to_owned(), source };
    let text = serde_json::to_vec(&header).map_err(|e| fail(e.into()))?;
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".thc-");
    // Like any new file; a temporary one is for its owner only unless told otherwise.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut temp = builder.tempfile_in(dir).map_err(fail)?;
    {
        let mut out = BufWriter::with_capacity(1 << 20, temp.as_file_mut());
        out.write_all(&MAGIC).map_err(fail)?;
        out.write_all(&FORMAT.to_le_bytes()).map_err(fail)?;
        out.write_all(&(text.len() as u64).to_le_bytes()).map_err(fail)?;
        out.write_all(&Sha256::digest(&text)).map_err(fail)?;
        out.write_all(&text).map_err(fail)?;
        for (_, values) in &columns {
            let mut result = Ok(());
            values.pour(|bytes| {
                if result.is_ok() {
                    result = out.write_all(bytes);
                }
            });
            result.map_err(fail)?;
        }
        out.flush().map_err(fail)?;
    }
    temp.as_file().sync_all().map_err(fail)?;
    temp.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// Reads a cache back into parts and report.
pub(crate) fn read_cache(path: &Path) -> Result<(StoreParts, DatasetReport), IngestError> {
    let damaged = |detail: String| IngestError::CacheDamaged { path: path.to_owned(), detail };
    let io = |source: std::io::Error| IngestError::Io { action: "read", path: path.to_owned(), source };
    let mut file = File::open(path).map_err(io)?;
    let len = file.metadata().map_err(io)?.len();
    let mut prefix = [0_u8; PREFIX];
    file.read_exact(&mut prefix).map_err(|_| damaged("it ends inside its first bytes".to_owned()))?;
    if prefix[..8] != MAGIC {
        return Err(damaged("it does not start as a cache does".to_owned()));
    }
    let format = u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
    if format > FORMAT {
        return Err(IngestError::CacheNewer { path: path.to_owned(), found: format, supported: FORMAT });
    }
    if format == 0 {
        return Err(damaged("format 0 was never written".to_owned()));
    }
    let header_len = prefix[12..20].iter().rev().fold(0_u64, |n, b| (n << 8) | u64::from(*b));
    if header_len > MAX_HEADER || header_len > len - PREFIX as u64 {
        return Err(damaged(format!("it claims a header of {header_len} bytes")));
    }
    let mut text = vec![0_u8; header_len as usize];
    file.read_exact(&mut text).map_err(io)?;
    if Sha256::digest(&text)[..] != prefix[20..] {
        return Err(damaged("the digest of its header does not match".to_owned()));
    }
    let header: Header = serde_json::from_slice(&text).map_err(|e| damaged(format!("its header cannot be read: {e}")))?;
    let base = PREFIX as u64 + header_len;
    let columns = read_columns(path, &header, base, len)?;
    let prices = match header.prices.as_str() {
        "raw" => PriceBasis::Raw,
        "forward_adjusted" => PriceBasis::ForwardAdjusted,
        other => return Err(damaged(format!("price basis `{other}` is not known"))),
    };
    let mut parts = Decoder::new(columns, &damaged).parts()?;
    verify(&parts).map_err(damaged)?;
    parts.meta = DatasetMeta { name: header.name, synthetic: header.synthetic, prices, digest: header.digest.clone() };
    let report = DatasetReport { digest: header.digest, ..header.report };
    Ok((parts, report))
}

fn read_columns(path: &Path, header: &Header, base: u64, len: u64) -> Result<BTreeMap<String, Owned>, IngestError> {
    let damaged = |detail: String| IngestError::CacheDamaged { path: path.to_owned(), detail };
    let mut expected = 0_u64;
    for entry in &header.columns {
        if entry.offset != expected {
            return Err(damaged(format!("column `{}` does not follow the one before", entry.name)));
        }
        expected = expected.checked_add(entry.bytes).ok_or_else(|| damaged("its columns are longer than any file".to_owned()))?;
    }
    if base.checked_add(expected) != Some(len) {
        return Err(damaged(format!("it has {len} bytes, its directory speaks of {}", base.saturating_add(expected))));
    }
    let read = |entry: &Entry| -> Result<(Owned, [u8; 32]), IngestError> {
        let io = |source: std::io::Error| IngestError::Io { action: "read", path: path.to_owned(), source };
        let mut file = File::open(path).map_err(io)?;
        file.seek(SeekFrom::Start(base + entry.offset)).map_err(io)?;
        // In pieces that stay in the processor's cache: read, hash, convert.
        let mut column = Owned::sized(&entry.name, entry.bytes as usize).map_err(damaged)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0_u8; PIECE.min(entry.bytes as usize)];
        let mut left = entry.bytes as usize;
        while left > 0 {
            let now = &mut piece[..left.min(PIECE)];
            file.read_exact(now).map_err(io)?;
            hash.update(&now);
            column.extend(now);
            left -= now.len();
        }
        let sha: [u8; 32] = hash.finalize().into();
        if canon::hex(&sha) != entry.sha256 {
            return Err(damaged(format!("the digest of column `{}` does not match", entry.name)));
        }
        Ok((column, sha))
    };
    let results: Vec<_> = header.columns.par_iter().map(read).collect();
    let mut columns = BTreeMap::new();
    let mut shas = Vec::with_capacity(results.len());
    for (entry, result) in header.columns.iter().zip(results) {
        let (column, sha) = result?;
        shas.push(sha);
        if columns.insert(entry.name.clone(), column).is_some() {
            return Err(damaged(format!("column `{}` is there twice", entry.name)));
        }
    }
    let prices = if header.prices == "raw" { PriceBasis::Raw } else { PriceBasis::ForwardAdjusted };
    let listed = header.columns.iter().zip(shas).map(|(entry, sha)| (entry.name.as_str(), entry.bytes, sha));
    if canon::digest(header.synthetic, prices, listed) != header.digest {
        return Err(damaged("the digest of the dataset does not match its columns".to_owned()));
    }
    Ok(columns)
}

/// What [`traderharness_market::Store::new`] takes for granted, because ingest normally makes it so.
fn verify(parts: &StoreParts) -> Result<(), String> {
    let wrong = |table: &str| Err(format!("table `{table}` is not as a dataset is"));
    let plausible = |days: &[Day]| days.iter().all(|d| civil::checked(i64::from(d.0) * civil::DAY) != civil::BAD);
    let sound = |bars: &BarColumns| {
        let values = [&bars.open, &bars.high, &bars.low, &bars.close, &bars.volume, &bars.amount];
        plausible(&bars.day)
            && values.iter().all(|v| v.len() == bars.day.len() && v.par_iter().all(|x| !x.is_infinite()))
            && bars.minute.iter().all(|m| m.0 < 1_440)
    };
    if !plausible(parts.calendar.days()) {
        return wrong("calendar");
    }
    if !sound(&parts.daily) {
        return wrong("daily");
    }
    if !sound(&parts.minute) {
        return wrong("5min");
    }
    if let Some(index) = &parts.index
        && (!sound(index) || !index.minute.is_empty() || !index.day.is_sorted_by(|a, b| a < b))
    {
        return wrong("index");
    }
    if let Some(v) = &parts.valuation {
        let rows = v.day.len();
        let shaped = [v.pe_ttm.len(), v.pb_mrq.len(), v.ps_ttm.len(), v.turnover.len(), v.is_st.len()].iter().all(|l| *l == rows)
            && v.offsets.len() == parts.codes.len() + 1
            && v.offsets.first() == Some(&0)
            && v.offsets.last().copied() == Some(rows as u32)
            && v.offsets.is_sorted();
        if !shaped || !plausible(&v.day) {
            return wrong("valuation");
        }
        for w in v.offsets.windows(2) {
            if !v.day[w[0] as usize..w[1] as usize].is_sorted_by(|a, b| a < b) {
                return wrong("valuation");
            }
        }
    }
    fn by<T, K: Ord>(rows: Option<&Vec<T>>, key: impl Fn(&T) -> K) -> bool {
        rows.is_none_or(|rows| rows.is_sorted_by(|a, b| key(a) <= key(b)))
    }
    let companies = parts.securities.as_ref().is_none_or(|rows| rows.is_sorted_by(|a, b| a.code < b.code));
    if !companies {
        return wrong("securities");
    }
    let ratios = parts
        .ex_events
        .iter()
        .flatten()
        .all(|e| [e.bonus, e.transfer, e.cash, e.rights, e.rights_price].iter().all(|v| v.is_finite() && *v >= 0.0));
    if !ratios || !by(parts.ex_events.as_ref(), |r| (r.code, r.ex_date)) {
        return wrong("dividends");
    }
    if !by(parts.fundamentals.as_ref(), |r| (r.code, r.visible_from, r.period)) {
        return wrong("fundamentals");
    }
    if !by(parts.segments.as_ref(), |r| (r.code, r.visible_from)) {
        return wrong("segments");
    }
    if !by(parts.announcements.as_ref(), |r| -> (Code, i64) { (r.code, r.time.0) }) {
        return wrong("announcements");
    }
    if !by(parts.news.as_ref(), |r| (r.time, r.id)) {
        return wrong("news");
    }
    Ok(())
}

/// Loads a cache file as a dataset.
///
/// # Errors
/// [`IngestError::CacheDamaged`], [`IngestError::CacheNewer`], [`IngestError::Io`].
pub fn load_cache(path: &Path) -> Result<Dataset, IngestError> {
    let (parts, report) = read_cache(path)?;
    crate::load::build(path, parts, report)
}
