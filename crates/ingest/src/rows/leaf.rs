//! One column of one row group as a stream of values with their levels, each written as JSON. Must hold one batch of them, no more.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescriptor;

/// Records read at a time.
const BATCH: usize = 1024;
/// 1970-01-01 as a day of the Julian count, which INT96 moments use.
const JULIAN_EPOCH: i64 = 2_440_588;
const DAY: i64 = 86_400;

/// How the values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
    Half,
    Decimal {
        scale: usize,
    },
    Text,
    Bytes,
    Uuid,
    Date,
    /// Units in a second.
    Time(i64),
    Timestamp {
        per_second: i64,
        utc: bool,
    },
    Int96,
    Null,
}

impl Kind {
    pub(super) fn of(column: &ColumnDescriptor) -> Self {
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        match column.logical_type_ref() {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => return Self::Text,
            Some(LogicalType::Decimal(of)) => return Self::Decimal { scale: usize::try_from(of.scale).unwrap_or(0) },
            Some(LogicalType::Date) => return Self::Date,
            Some(LogicalType::Time(of)) => return Self::Time(unit(&of.unit)),
            Some(LogicalType::Timestamp(of)) => {
                return Self::Timestamp { per_second: unit(&of.unit), utc: of.is_adjusted_to_u_t_c };
            }
            Some(LogicalType::Integer(of)) => return if of.is_signed { Self::Signed } else { Self::Unsigned },
            Some(LogicalType::Uuid) => return Self::Uuid,
            Some(LogicalType::Float16) => return Self::Half,
            Some(LogicalType::Unknown) => return Self::Null,
            _ => {}
        }
        match column.converted_type() {
            ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => return Self::Text,
            ConvertedType::DECIMAL => return Self::Decimal { scale: usize::try_from(column.type_scale()).unwrap_or(0) },
            ConvertedType::DATE => return Self::Date,
            ConvertedType::TIME_MILLIS => return Self::Time(1_000),
            ConvertedType::TIME_MICROS => return Self::Time(1_000_000),
            ConvertedType::TIMESTAMP_MILLIS => return Self::Timestamp { per_second: 1_000, utc: false },
            ConvertedType::TIMESTAMP_MICROS => return Self::Timestamp { per_second: 1_000_000, utc: false },
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64 => {
                return Self::Unsigned;
            }
            _ => {}
        }
        match column.physical_type() {
            Physical::BOOLEAN => Self::Bool,
            Physical::INT32 | Physical::INT64 => Self::Signed,
            Physical::INT96 => Self::Int96,
            Physical::FLOAT | Physical::DOUBLE => Self::Float,
            Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => Self::Bytes,
        }
    }
}

/// A column being read.
pub(super) struct Leaf {
    kind: Kind,
    most_level: i16,
    most_repeats: i16,
    levels: Vec<i16>,
    repeats: Vec<i16>,
    /// Place in the batch, and how many there are.
    at: usize,
    len: usize,
    /// Values before `at`: nulls have none.
    value: usize,
    ended: bool,
    column: Box<dyn Values>,
}

impl Leaf {
    pub(super) fn new(column: &ColumnDescriptor, reader: ColumnReader) -> Self {
        Self {
            kind: Kind::of(column),
            most_level: column.max_def_level(),
            most_repeats: column.max_rep_level(),
            levels: vec![],
            repeats: vec![],
            at: 0,
            len: 0,
            value: 0,
            ended: false,
            column: values(reader),
        }
    }

    /// Makes the next value ready, if there is one.
    fn ready(&mut self) -> Result<bool, ParquetError> {
        while self.at >= self.len && !self.ended {
            self.levels.clear();
            self.repeats.clear();
            let (records, values, levels) = self.column.read(BATCH, &mut self.levels, &mut self.repeats)?;
            self.len = if self.most_level > 0 || self.most_repeats > 0 { levels.max(values) } else { values };
            (self.at, self.value) = (0, 0);
            self.ended = records == 0 && self.len == 0;
        }
        Ok(!self.ended)
    }

    /// Level of the next value; `None` at the end of the row group.
    pub(super) fn level(&mut self) -> Result<Option<i16>, ParquetError> {
        Ok(self.ready()?.then(|| self.levels.get(self.at).copied().unwrap_or(self.most_level)))
    }

    /// At which level the next value repeats; 0 begins a row, and so does the end.
    pub(super) fn repeats(&mut self) -> Result<i16, ParquetError> {
        Ok(if self.ready()? { self.repeats.get(self.at).copied().unwrap_or(0) } else { 0 })
    }

    /// Goes past a value that is null or an empty list.
    pub(super) fn pass(&mut self) -> Result<(), ParquetError> {
        if let Some(level) = self.level()? {
            self.value += usize::from(level == self.most_level);
            self.at += 1;
        }
        Ok(())
    }

    /// Writes the next value; false at the end of the row group.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> Result<bool, ParquetError> {
        let Some(level) = self.level()? else { return Ok(false) };
        if level == self.most_level {
            self.column.write(self.value, self.kind, out)?;
        } else {
            out.extend_from_slice(b"null");
        }
        self.pass()?;
        Ok(true)
    }
}

/// Values of one physical type.
trait Values {
    fn read(
        &mut self,
        records: usize,
        levels: &mut Vec<i16>,
        repeats: &mut Vec<i16>,
    ) -> Result<(usize, usize, usize), ParquetError>;
    fn write(&self, at: usize, kind: Kind, out: &mut Vec<u8>) -> Result<(), ParquetError>;
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    write: fn(&T::T, Kind, &mut Vec<u8>),
}

impl<T: DataType> Values for Typed<T> {
    fn read(
        &mut self,
        records: usize,
        levels: &mut Vec<i16>,
        repeats: &mut Vec<i16>,
    ) -> Result<(usize, usize, usize), ParquetError> {
        self.values.clear();
        self.reader.read_records(records, Some(levels), Some(repeats), &mut self.values)
    }

    fn write(&self, at: usize, kind: Kind, out: &mut Vec<u8>) -> Result<(), ParquetError> {
        let value = self.values.get(at).ok_or_else(|| ParquetError::EOF("a column has fewer values than levels".to_owned()))?;
        (self.write)(value, kind, out);
        Ok(())
    }
}

fn values(reader: ColumnReader) -> Box<dyn Values> {
    fn of<T: DataType + 'static>(reader: ColumnReaderImpl<T>, write: fn(&T::T, Kind, &mut Vec<u8>)) -> Box<dyn Values> {
        Box::new(Typed { reader, values: vec![], write })
    }
    match reader {
        ColumnReader::BoolColumnReader(r) => of(r, |v, _, out| out.extend_from_slice(if *v { b"true" } else { b"false" })),
        ColumnReader::Int32ColumnReader(r) => of(r, |v, kind, out| match kind {
            Kind::Unsigned => integer(i128::from(*v as u32), kind, out),
            _ => integer(i128::from(*v), kind, out),
        }),
        ColumnReader::Int64ColumnReader(r) => of(r, |v, kind, out| match kind {
            Kind::Unsigned => integer(i128::from(*v as u64), kind, out),
            _ => integer(i128::from(*v), kind, out),
        }),
        ColumnReader::Int96ColumnReader(r) => of(r, |v, _, out| {
            let [low, high, day] = *v.data() else { return null(out) };
            let nanos = (i64::from(high) << 32 | i64::from(low)).clamp(0, DAY * 1_000_000_000 - 1);
            moment((i64::from(day) - JULIAN_EPOCH) * DAY + nanos / 1_000_000_000, nanos % 1_000_000_000, false, out);
        }),
        ColumnReader::FloatColumnReader(r) => of(r, |v, _, out| match serde_json::to_string(v) {
            Ok(text) if v.is_finite() => out.extend_from_slice(text.as_bytes()),
            _ => null(out),
        }),
        ColumnReader::DoubleColumnReader(r) => of(r, |v, _, out| float(*v, out)),
        ColumnReader::ByteArrayColumnReader(r) => of(r, |v, kind, out| bytes(v.as_bytes(), kind, out)),
        ColumnReader::FixedLenByteArrayColumnReader(r) => of(r, |v, kind, out| bytes(v.as_bytes(), kind, out)),
    }
}

fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

fn float(value: f64, out: &mut Vec<u8>) {
    match serde_json::Number::from_f64(value) {
        Some(number) => out.extend_from_slice(number.to_string().as_bytes()),
        None => null(out),
    }
}

fn integer(value: i128, kind: Kind, out: &mut Vec<u8>) {
    // What a Parquet integer means fits 64 bits.
    let narrow = i64::try_from(value).unwrap_or(i64::MAX);
    match kind {
        Kind::Decimal { scale } => decimal(&value.unsigned_abs().to_string(), value < 0, scale, out),
        Kind::Date => quoted(&date(narrow), out),
        Kind::Time(unit) => quoted(&clock(narrow.div_euclid(unit), nanos(narrow, unit)), out),
        Kind::Timestamp { per_second, utc } => {
            moment(narrow.div_euclid(per_second), nanos(narrow, per_second), utc, out);
        }
        Kind::Null => null(out),
        _ => out.extend_from_slice(value.to_string().as_bytes()),
    }
}

fn bytes(value: &[u8], kind: Kind, out: &mut Vec<u8>) {
    match kind {
        Kind::Decimal { scale } => match magnitude(value) {
            Some((digits, negative)) => decimal(&digits, negative, scale, out),
            None => quoted(&base64(value), out),
        },
        Kind::Uuid if value.len() == 16 => {
            let hex: String = value.iter().map(|b| format!("{b:02x}")).collect();
            let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| hex.get(range).unwrap_or_default());
            quoted(&parts.join("-"), out);
        }
        Kind::Half => match value {
            [low, high] => float(half(u16::from_le_bytes([*low, *high])), out),
            _ => null(out),
        },
        Kind::Null => null(out),
        _ => match std::str::from_utf8(value) {
            Ok(text) => quoted(text, out),
            Err(_) => quoted(&base64(value), out),
        },
    }
}

/// A JSON string.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>) {
    // Writing into memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

/// Digits with a point before the last `scale` of them.
fn decimal(digits: &str, negative: bool, scale: usize, out: &mut Vec<u8>) {
    // A scale that no decimal has would only pad zeros.
    let scale = scale.min(1024);
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, rest) = digits.split_at(digits.len() - scale);
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(whole.as_bytes());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(rest.as_bytes());
    }
}

/// Decimal digits of a big-endian two's complement number of at most 64 bytes.
fn magnitude(bytes: &[u8]) -> Option<(String, bool)> {
    if bytes.len() > 64 {
        return None;
    }
    let negative = bytes.first().is_some_and(|b| *b >= 0x80);
    let mut left: Vec<u8> = bytes.iter().map(|b| if negative { !b } else { *b }).collect();
    if negative {
        for byte in left.iter_mut().rev() {
            let (next, over) = byte.overflowing_add(1);
            *byte = next;
            if !over {
                break;
            }
        }
        // The smallest number has no positive counterpart of its width: the carry is one more byte.
        if left.iter().all(|b| *b == 0) {
            left.insert(0, 1);
        }
    }
    let mut digits = vec![];
    while left.iter().any(|b| *b != 0) {
        let mut rest = 0_u32;
        for byte in &mut left {
            let value = rest << 8 | u32::from(*byte);
            *byte = (value / 10) as u8;
            rest = value % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    digits.reverse();
    let text = String::from_utf8(digits).ok()?;
    Some((if text.is_empty() { "0".to_owned() } else { text }, negative))
}

fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

const fn nanos(value: i64, per_second: i64) -> i64 {
    value.rem_euclid(per_second) * (1_000_000_000 / per_second)
}

/// `2025-03-14`; days since 1970-01-01 in the Gregorian calendar, as far as it goes (Hinnant, "chrono-compatible low-level date
/// algorithms").
fn date(days: i64) -> String {
    let z = days.clamp(-1_000_000_000, 1_000_000_000) + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn clock(seconds: i64, nanos: i64) -> String {
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if nanos == 0 {
        return whole;
    }
    format!("{whole}.{}", format!("{nanos:09}").trim_end_matches('0'))
}

fn moment(seconds: i64, nanos: i64, utc: bool, out: &mut Vec<u8>) {
    let text =
        format!("{}T{}{}", date(seconds.div_euclid(DAY)), clock(seconds.rem_euclid(DAY), nanos), if utc { "Z" } else { "" });
    quoted(&text, out);
}

/// Standard base64 with padding (RFC 4648).
pub(super) fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let value = group.iter().fold(0_u32, |value, b| value << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for n in 0..4 {
            let sign = SIGNS[(value >> (18 - 6 * n) & 0x3f) as usize];
            out.push(if n <= group.len() { char::from(sign) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl Fn(&mut Vec<u8>), expected: &str) {
        let mut out = vec![];
        write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn days_and_moments_are_iso() {
        check(|out| integer(0, Kind::Date, out), "\"1970-01-01\"");
        check(|out| integer(-1, Kind::Date, out), "\"1969-12-31\"");
        check(|out| integer(19_782, Kind::Date, out), "\"2024-02-29\"");
        check(|out| integer(-719_528, Kind::Date, out), "\"0000-01-01\"");
        let millis = Kind::Timestamp { per_second: 1_000, utc: true };
        check(|out| integer(1_710_408_600_500, millis, out), "\"2024-03-14T09:30:00.5Z\"");
        check(|out| integer(-1, millis, out), "\"1969-12-31T23:59:59.999Z\"");
        check(|out| integer(34_200_000_001, Kind::Time(1_000_000), out), "\"09:30:00.000001\"");
    }

    #[test]
    fn decimals_are_exact() {
        check(|out| integer(-5, Kind::Decimal { scale: 3 }, out), "-0.005");
        check(|out| integer(123_456, Kind::Decimal { scale: 2 }, out), "1234.56");
        check(|out| bytes(&[0xff, 0x85], Kind::Decimal { scale: 2 }, out), "-1.23");
        check(|out| bytes(&[0x80], Kind::Decimal { scale: 0 }, out), "-128");
        check(|out| bytes(&[0x80, 0x00], Kind::Decimal { scale: 0 }, out), "-32768");
        let wide = [0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        check(|out| bytes(&wide, Kind::Decimal { scale: 1 }, out), "34028236692093846346337460743176821145.6");
    }

    #[test]
    fn bytes_are_text_or_base64() {
        check(|out| bytes("股".as_bytes(), Kind::Bytes, out), "\"股\"");
        check(|out| bytes(&[0xff, 0xfe], Kind::Bytes, out), "\"//4=\"");
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        check(|out| bytes(&[0x12; 16], Kind::Uuid, out), "\"12121212-1212-1212-1212-121212121212\"");
        check(|out| bytes(&[0x00, 0x3e], Kind::Half, out), "1.5");
        check(|out| bytes(&[0x00, 0x7e], Kind::Half, out), "null");
    }
}
