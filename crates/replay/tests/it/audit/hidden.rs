//! What an artifact tells all the same although it does not stand there in plain characters.

use super::{check, scan};
use traderharness_replay::audit::{FindingKind, Kind};

#[test]
fn what_is_written_in_another_way_is_found() {
    let name = "贵州茅台";
    let hex: String = name.bytes().map(|b| format!("{b:02x}")).collect();
    let lower: String = name.bytes().map(|b| format!("\\x{b:02x}")).collect();
    let octal: String = name.bytes().map(|b| format!("\\{b:o}")).collect();
    let percent: String = name.bytes().map(|b| format!("%{b:02X}")).collect();
    let units =
        |before: &str, after: &str| -> String { name.chars().map(|c| format!("{before}{:x}{after}", u32::from(c))).collect() };
    for text in [
        "6LS15bee6IyF5Y+w".to_owned(),
        "id=6LS15bee6IyF5Y-w".to_owned(),
        format!("0x{hex}"),
        lower,
        octal,
        format!("https://x.test/?q={percent}&n=1"),
        units("\\u", ""),
        units("\\\\u", ""),
        units("\\u{", "}"),
        units("%u", ""),
        units("&#x", ";"),
    ] {
        check(&text, &["name:company"]);
    }
    // "day 2024-03-14 x", "buy 600519 now"
    check("ZGF5IDIwMjQtMDMtMTQgeA==", &["date:iso_day"]);
    check("6275792036303035313920 6e6f77", &["code:alone"]);
    check("6 0 0 5 1 9", &["code:spelled_out"]);
    check("0 0 0 0 0 1, 6 0 0 5 1 9 7, 1 2 3 4 5 6", &[]);
    // {"n": "\u8d35\u5dde\u8305\u53f0"}
    check("eyJuIjogIlx1OGQzNVx1NWRkZVx1ODMwNVx1NTNmMCJ9", &["name:company"]);
    check("https://x.test/?q=%25E8%25B4%25B5%25E5%25B7%259E%25E8%258C%2585%25E5%258F%25B0", &["name:company"]);
    // One level: base64 of base64 is not looked into.
    check("NkxTMTViZWU2SXlGNVkrdw==", &[]);
    check("conditional_order_events and sha256 e774c8c1fa254ffb81ebf4b67027eefd844740427f3f4f9cc18c63c8cdc030d8", &[]);
}

#[test]
fn texts_in_other_encodings_are_searched() {
    let text = "名称,贵州茅台\n代码,600519\n日期,2024-03-14\n";
    let utf16: Vec<u8> = std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    // As Excel writes it in China.
    let gbk = b"\xc3\xfb\xb3\xc6,\xb9\xf3\xd6\xdd\xc3\xa9\xcc\xa8\n600519\n2024-03-14\n";
    for bytes in [text.as_bytes(), &utf16, gbk] {
        let found = scan(bytes, Kind::Text);
        let kinds: Vec<_> = found.findings.iter().map(|f| (f.kind, f.line)).collect();
        assert_eq!(kinds, [(FindingKind::Name, 1), (FindingKind::Code, 2), (FindingKind::Date, 3)], "{found:?}");
    }
}
