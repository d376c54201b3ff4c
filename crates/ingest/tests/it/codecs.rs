//! Pages of every codec and encoding that other writers use: what pyarrow wrote is read, and no page unpacks to more than it claims.

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::Arc;
use traderharness_ingest::rows::{RowLimits, Rows, RowsError};

/// Written by pyarrow, see rows/codecs.py.
const VERSIONS: [&[u8]; 2] = [include_bytes!("rows/codecs_1.parquet"), include_bytes!("rows/codecs_2.parquet")];

fn read(bytes: &[u8], limits: RowLimits) -> Result<Vec<Value>, RowsError> {
    Rows::from_bytes("codecs.parquet", bytes.to_vec(), limits)?.collect()
}

#[test]
fn every_codec_and_encoding_of_pyarrow_gives_the_plain_values() {
    for bytes in VERSIONS {
        let rows = read(bytes, RowLimits::default()).unwrap();
        assert_eq!(rows.len(), 150);
        assert_eq!(rows[8]["text/PLAIN/none"], "贵州茅台 2 号xxx");
        let mut compared = 0;
        for row in &rows {
            for (column, value) in row.as_object().unwrap() {
                let kind = column.split('/').next().unwrap();
                assert_eq!(*value, row[format!("{kind}/PLAIN/none")], "{column}");
                compared += 1;
            }
        }
        assert_eq!(compared, 150 * 35);
    }
}

/// One column of texts that are not null.
fn texts(values: &[String], encoding: Encoding, compression: Compression, version: WriterVersion) -> Vec<u8> {
    let field = Type::primitive_type_builder("t", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String))
        .build()
        .unwrap();
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(vec![Arc::new(field)]).build().unwrap());
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(encoding)
        .set_compression(compression)
        .set_writer_version(version)
        .set_data_page_size_limit(usize::MAX)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut writer = SerializedFileWriter::new(vec![], schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<ByteArray> = values.iter().map(|text| ByteArray::from(text.as_str())).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn lz4_behind_the_lengths_of_hadoop_is_read() {
    let values: Vec<String> = (0..500).map(|n| format!("text number {}", n % 7)).collect();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let bytes = texts(&values, Encoding::PLAIN, Compression::LZ4, version);
        let rows = read(&bytes, RowLimits::default()).unwrap();
        assert!(rows.iter().zip(&values).all(|(row, text)| row["t"] == *text) && rows.len() == 500);
    }
}

// A few hundred bytes that would become eighty megabytes: each text is the long one before it.
#[test]
fn texts_that_repeat_what_is_before_them_meet_the_limits() {
    let values = vec!["x".repeat(40_000); 2_000];
    let bytes = texts(&values, Encoding::DELTA_BYTE_ARRAY, Compression::UNCOMPRESSED, WriterVersion::PARQUET_2_0);
    assert!(bytes.len() < 45_000, "{}", bytes.len());
    let error = read(&bytes, RowLimits::default()).unwrap_err();
    assert!(matches!(error, RowsError::TooLarge { what: "bytes in one page", .. }), "{error}");
    let limits = RowLimits { page_bytes: 1 << 20, ..RowLimits::default() };
    let bytes = texts(&values[..20], Encoding::DELTA_BYTE_ARRAY, Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0);
    assert_eq!(read(&bytes, limits).unwrap().len(), 20);
    let error = read(&bytes, RowLimits { open_bytes: 500_000, ..limits }).unwrap_err();
    assert!(matches!(error, RowsError::TooLarge { what: "bytes in the pages of one row group", found: 800_080, .. }), "{error}");
}

/// One plain text, with the last byte of `from` another one.
#[track_caller]
fn refused(from: &[u8], to: u8, expected: &str) {
    let mut bytes = texts(&["a".to_owned()], Encoding::PLAIN, Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0);
    let at = bytes.windows(from.len()).position(|part| part == from).unwrap() + from.len() - 1;
    bytes[at] = to;
    let error = read(&bytes, RowLimits::default()).unwrap_err().to_string();
    assert_eq!(error, format!("`codecs.parquet`{expected}"));
}

// Numbers are doubled in Thrift.
#[test]
fn codecs_and_encodings_that_are_not_read_are_named() {
    // Behind the path of the column, its codec; behind the one value of the page, its encoding.
    refused(&[0x19, 0x18, 1, b't', 0x15, 0], 2 * 3, ", column `t`: codec `lzo` is not read");
    refused(&[0x2c, 0x15, 2, 0x15, 0], 2 * 4, ", column `t`: encoding `number 4` is not read");
}

#[test]
fn a_page_that_is_not_compressed_is_as_long_as_it_claims() {
    refused(&[0x15, 0, 0x15, 2 * 5], 2 * 4, " is damaged: column `t`: a page is not as long as it claims");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn changed_bytes_never_break_a_codec(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        version in 0..2_usize,
    ) {
        let mut bytes = VERSIONS[version].to_vec();
        for (at, byte) in changes {
            // The pages stand before the footer, which is changed in another test.
            let at = at.index(bytes.len() * 3 / 4);
            bytes[at] = byte;
        }
        if let Ok(rows) = read(&bytes, RowLimits { bytes: 1 << 24, ..RowLimits::default() }) {
            prop_assert_eq!(rows.len(), 150);
        }
    }
}
