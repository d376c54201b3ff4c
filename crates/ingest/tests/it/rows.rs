//! Files of rows: what is written comes back, what other writers wrote is read, and no file is believed.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::Arc;
use traderharness_ingest::rows::{Column, ColumnKind, RowLimits, RowWriter, Rows, RowsError, Unpacked};

fn columns() -> [Column; 5] {
    [
        Column::new("text", ColumnKind::Text),
        Column::new("count", ColumnKind::Integer),
        Column::new("share", ColumnKind::Float),
        Column::new("done", ColumnKind::Flag),
        Column::new("inner", ColumnKind::Json),
    ]
}

fn written(rows: &[Value]) -> Vec<u8> {
    let mut writer = RowWriter::new(vec![], &columns()).unwrap();
    for row in rows {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: Vec<u8>, limits: RowLimits) -> Result<Vec<Value>, RowsError> {
    Rows::from_bytes("rows.parquet", bytes, limits)?.collect()
}

#[track_caller]
fn refused(bytes: Vec<u8>, limits: RowLimits, expected: &str) {
    let error = read(bytes, limits).map(|rows| rows.len()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}\nexpected {expected}");
}

#[test]
fn rows_come_back_and_the_same_rows_are_the_same_bytes() {
    let rows: Vec<Value> = (0..40_000)
        .map(|n| json!({"text": format!("股 {n}"), "count": n - 7, "share": f64::from(n) / 4.0, "done": n % 3 == 0, "inner": {"n": [n, null]}}))
        .collect();
    let bytes = written(&rows);
    assert_eq!(bytes, written(&rows));
    let found = read(bytes, RowLimits::default()).unwrap();
    assert_eq!(found.len(), rows.len());
    for (found, row) in found.iter().zip(&rows) {
        let mut expected = row.clone();
        expected["inner"] = json!(row["inner"].to_string());
        assert_eq!(*found, expected);
    }
}

#[test]
fn what_is_missing_is_null_and_what_does_not_fit_is_refused() {
    let none = json!({"text": null, "count": null, "share": null, "done": null, "inner": null});
    assert_eq!(read(written(&[json!({}), none.clone()]), RowLimits::default()).unwrap(), [none.clone(), none]);
    assert_eq!(read(written(&[]), RowLimits::default()).unwrap(), [Value::Null; 0]);
    let mut writer = RowWriter::new(vec![], &columns()).unwrap();
    for (row, expected) in [
        (json!({"text": 1}), "row 0: `text` must be a text"),
        (json!({"count": 1.5}), "`count` must be an integer"),
        (json!({"count": u64::MAX}), "`count` must be an integer"),
        (json!({"done": "yes"}), "`done` must be true or false"),
        (json!({"other": 1}), "`other` must be left out"),
        (json!([]), "must be an object"),
    ] {
        assert!(writer.push(&row).unwrap_err().to_string().contains(expected), "{row}");
    }
    assert_eq!(writer.rows(), 0);
    for names in [&["a", "a"][..], &[""], &[]] {
        let columns: Vec<Column> = names.iter().map(|name| Column::new(*name, ColumnKind::Text)).collect();
        assert!(matches!(RowWriter::new(vec![], &columns), Err(RowsError::Columns { .. })));
    }
}

#[test]
fn every_kind_of_another_writer_is_read() {
    // Written by pyarrow, see rows/make.py.
    let bytes = include_bytes!("rows/kinds.parquet").to_vec();
    let rows = Rows::from_bytes("kinds.parquet", bytes, RowLimits::default()).unwrap();
    let names: Vec<String> = rows.columns().into_iter().map(str::to_owned).collect();
    let described = rows.described().to_string();
    assert!(described.contains("pandas") && described.contains("parquet-cpp"), "{described}");
    let mut text = String::new();
    rows.into_read().read_to_string(&mut text).unwrap();
    insta::assert_snapshot!("rows_of_every_kind", format!("{}\n{text}", names.join(" ")));
}

/// A file with one list column, by levels.
fn lists(levels: &[i16], repeats: &[i16], values: &[&str], rows: i64) -> Vec<u8> {
    let item = Type::primitive_type_builder("element", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::String));
    let list =
        Type::group_type_builder("list").with_repetition(Repetition::REPEATED).with_fields(vec![Arc::new(item.build().unwrap())]);
    let outer = Type::group_type_builder("tags")
        .with_repetition(Repetition::OPTIONAL)
        .with_converted_type(ConvertedType::LIST)
        .with_fields(vec![Arc::new(list.build().unwrap())]);
    let schema = Type::group_type_builder("schema").with_fields(vec![Arc::new(outer.build().unwrap())]).build().unwrap();
    let mut writer = SerializedFileWriter::new(vec![], Arc::new(schema), Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<ByteArray> = values.iter().map(|v| ByteArray::from(*v)).collect();
    column.typed::<ByteArrayType>().write_batch(&values, Some(levels), Some(repeats)).unwrap();
    column.close().unwrap();
    let written = group.close().unwrap().num_rows();
    assert_eq!(written, rows);
    writer.into_inner().unwrap()
}

#[test]
fn lists_of_any_emptiness_are_told_apart() {
    let bytes = lists(&[0, 1, 2, 3, 3, 2, 3], &[0, 0, 0, 0, 1, 1, 0], &["a", "b", "c"], 5);
    let rows = read(bytes, RowLimits::default()).unwrap();
    assert_eq!(
        rows,
        [
            json!({"tags": null}),
            json!({"tags": []}),
            json!({"tags": [null]}),
            json!({"tags": ["a", "b", null]}),
            json!({"tags": ["c"]})
        ]
    );
}

fn texts(rows: usize, text: &str) -> Vec<u8> {
    written(&(0..rows).map(|_| json!({"text": text})).collect::<Vec<_>>())
}

// A few kilobytes that would become gigabytes.
#[test]
fn bombs_meet_a_limit_before_they_are_unpacked() {
    let limits = RowLimits::default();
    let long = "a".repeat(1 << 20);
    // One page.
    refused(texts(3, &long), RowLimits { page_bytes: 1 << 20, ..limits }, "bytes in one page; at most 1048576");
    // Pages of all columns together.
    refused(texts(3, &long), RowLimits { open_bytes: 1 << 20, ..limits }, "bytes in the pages of one row group");
    // One row, and many rows that one entry of a dictionary fills.
    refused(texts(1, &long), RowLimits { row_bytes: 1 << 16, ..limits }, "bytes of JSON in one row; at most 65536");
    let bomb = texts(1_000, &"b".repeat(1 << 16));
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    refused(bomb, RowLimits { bytes: 1 << 22, ..limits }, "bytes of JSON; at most 4194304");
    // Rows that cost nothing.
    refused(texts(20_000, ""), RowLimits { rows: 19_999, ..limits }, "rows; at most 19999");
    let nulls = {
        let field = Type::primitive_type_builder("n", Physical::INT64).with_repetition(Repetition::OPTIONAL).build().unwrap();
        let schema = Type::group_type_builder("schema").with_fields(vec![Arc::new(field)]).build().unwrap();
        let mut writer = SerializedFileWriter::new(vec![], Arc::new(schema), Arc::new(WriterProperties::default())).unwrap();
        let levels = vec![0; 2_600_000];
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[], Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.into_inner().unwrap()
    };
    assert!(nulls.len() < 8_000, "{}", nulls.len());
    refused(nulls, limits, "has 2600000 rows; at most");
}

/// A number as the footer and the page headers write it.
fn varint(value: i64) -> Vec<u8> {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    let mut out = vec![];
    loop {
        let byte = (raw & 0x7f) as u8;
        raw >>= 7;
        if raw == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

/// Puts another number of the same length where a known one stands, `nth` from the end.
fn patched(mut bytes: Vec<u8>, from: i64, to: i64, nth: usize) -> Vec<u8> {
    let (old, new) = (varint(from), varint(to));
    assert_eq!(old.len(), new.len());
    let places: Vec<usize> = (0..bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(&old)).collect();
    let at = places[places.len() - 1 - nth];
    bytes[at..at + old.len()].copy_from_slice(&new);
    bytes
}

#[test]
fn claims_that_contradict_each_other_are_refused() {
    let one = [Column::new("text", ColumnKind::Text)];
    let mut writer = RowWriter::new(vec![], &one).unwrap();
    for n in 0..9_000 {
        writer.push(&json!({"text": format!("text number {n}")})).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let reader = parquet::file::serialized_reader::SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
    use parquet::file::reader::FileReader as _;
    let column = reader.metadata().row_group(0).column(0).clone();
    let size = column.uncompressed_size();
    let limits = RowLimits::default();
    refused(patched(bytes.clone(), size, size - 40_000, 1), limits, "its pages hold more than");
    refused(patched(bytes.clone(), column.compressed_size(), column.compressed_size() + 3, 1), limits, "damaged");
    // The number of rows stands in the footer, the row group, the column and its page; statistics are not believed anyway.
    let outcomes: Vec<Option<usize>> =
        (0..4).map(|nth| read(patched(bytes.clone(), 9_000, 9_100, nth), limits).ok().map(|rows| rows.len())).collect();
    assert!(outcomes.iter().flatten().all(|rows| *rows == 9_000), "{outcomes:?}");
    assert!(outcomes.iter().filter(|rows| rows.is_none()).count() >= 3, "{outcomes:?}");
    refused(bytes[..bytes.len() - 1].to_vec(), limits, "does not end as a Parquet file");
    refused(bytes[..9].to_vec(), limits, "too short");
    let mut footer = bytes.clone();
    let at = footer.len() - 8;
    footer[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(footer, limits, "its footer is longer than the file");
    refused(vec![b'x'; 4096], limits, "does not end as a Parquet file");
}

#[test]
fn a_fault_comes_after_the_rows_before_it() {
    let rows: Vec<Value> = (0..10).map(|n| json!({"text": "x".repeat(n * 100)})).collect();
    let limits = RowLimits { row_bytes: 700, ..RowLimits::default() };
    let mut found = Rows::from_bytes("rows.parquet", written(&rows), limits).unwrap();
    let mut got = 0;
    let error = loop {
        match found.next_row() {
            Ok(Some(_)) => got += 1,
            Ok(None) => panic!("the fault was lost"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, RowsError::TooLarge { .. }) && got == 7, "{error} after {got}");
    assert!(found.next_row().is_err() && found.next().is_none());
    let mut text = String::new();
    let mut lines = Rows::from_bytes("rows.parquet", written(&rows), limits).unwrap().into_read();
    let error = lines.read_to_string(&mut text).unwrap_err();
    assert!(error.to_string().contains("bytes of JSON in one row"), "{error}");
}

#[test]
fn packed_text_stops_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl.zst");
    let pack = |text: &[u8]| {
        let mut encoder = zstd::stream::write::Encoder::new(std::fs::File::create(&path).unwrap(), 3).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap();
    };
    let read = |limits| {
        let mut out = vec![];
        Unpacked::open(&path, limits).unwrap().read_to_end(&mut out).map(|_| out)
    };
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap();
    };
    for pack in [&pack as &dyn Fn(&[u8]), &gzip] {
        pack(b"hello");
        assert_eq!(read(RowLimits::default()).unwrap(), b"hello");
        pack(&vec![b'0'; 8 << 20]);
        let error = read(RowLimits { bytes: 1 << 20, ..RowLimits::default() }).unwrap_err();
        assert!(error.to_string().contains("bytes of text; at most 1048576"), "{error}");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(read(RowLimits::default()).is_err());
    }
    std::fs::write(&path, b"not zstd").unwrap();
    assert!(read(RowLimits::default()).is_err());
    assert!(matches!(Unpacked::open(folder.path().join("none"), RowLimits::default()), Err(RowsError::Io { .. })));
}

fn small() -> Vec<u8> {
    written(&(0..50).map(|n| json!({"text": format!("t{n}"), "count": n, "inner": [n]})).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes_never_break_the_reader(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        nested in any::<bool>(),
    ) {
        let mut bytes = if nested { include_bytes!("rows/kinds.parquet").to_vec() } else { small() };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let limits = RowLimits { bytes: 1 << 24, ..RowLimits::default() };
        if let Ok(rows) = read(bytes, limits) {
            prop_assert!(rows.len() <= 2_100_000);
        }
    }
}
