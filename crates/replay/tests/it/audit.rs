//! The leak audit: planted leaks of every kind in every container are found, and what only looks like one is not.

mod dates;
mod hidden;

use std::io::Read;
use traderharness_replay::audit::{Auditor, Exchange, FindingKind, Findings, Kind, NameKind, Rules};

const KEY: &str = "planted/key+with=signs_0123456789";

fn rules() -> Rules {
    Rules {
        names: vec![
            ("贵州茅台".into(), NameKind::Company),
            ("万  科Ａ".into(), NameKind::Alias),
            ("Kweichow Moutai".into(), NameKind::English),
            ("机器人".into(), NameKind::Everyday),
            ("TCL".into(), NameKind::English),
        ],
        codes: ["600519", "000001", "000338", "300024", "830799", "688981", "100000", "202403"]
            .map(|c| (c.to_owned(), None))
            .to_vec(),
        allowed: vec!["gpt-4o-2024-08-06".into(), "draft/2020-12".into()],
        secrets: vec![KEY.into()],
        paths: vec!["/srv/runs/alice".into()],
        ..Rules::default()
    }
}

fn scan(bytes: impl AsRef<[u8]>, kind: Kind) -> Findings {
    Auditor::new(&rules()).scan("x", bytes.as_ref(), kind)
}

/// Where in their documents things are found.
fn pointers(found: &Findings) -> Vec<&str> {
    found.findings.iter().filter_map(|f| f.pointer.as_deref()).collect()
}

/// Kind and form of what is found in a text, as text and in every container.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let forms =
        |found: &Findings| -> Vec<String> { found.findings.iter().map(|f| format!("{}:{}", f.kind.name(), f.detail)).collect() };
    assert_eq!(forms(&scan(text, Kind::Text)), expected, "{text} as text");
    let json = serde_json::json!({ "x": text }).to_string();
    assert_eq!(forms(&scan(&json, Kind::Json)), expected, "{json}");
    assert_eq!(forms(&scan(format!("{{}}\n{json}\n"), Kind::Jsonl)), expected, "{json} on a line");
    let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    assert_eq!(forms(&scan(format!("[\"{escaped}\"]"), Kind::Json)), expected, "{escaped}");
    let nested = serde_json::json!({ "content": json }).to_string();
    let found = scan(&nested, Kind::Json);
    assert_eq!(forms(&found), expected, "{nested}");
    assert!(found.findings.iter().all(|f| f.pointer.as_deref() == Some("/content#/x")), "{found:?}");
    let html: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("&#x{:x};", u32::from(c)) }).collect();
    assert_eq!(forms(&scan(format!("<p>{html}</p>"), Kind::Html)), expected, "{html}");
}

// complaint LA-8
#[test]
fn names_are_found_in_every_container() {
    check("昨日贵州茅台上涨", &["name:company"]);
    check("贵\u{200b}州茅台", &["name:company"]);
    check("kweichow MOUTAI fell", &["name:english_name"]);
    // Taken apart, and with what nobody sees between.
    check("贵 州 茅 台", &["name:company"]);
    check("贵·州·茅·台涨停", &["name:company"]);
    check("贵州 茅台", &["name:company"]);
    check("贵\u{202d}州\u{fe0f}茅\u{2066}台", &["name:company"]);
    check("贵州的茅台", &[]);
    check("万科Ａ与万  科A", &["name:alias", "name:alias"]);
    check("MyKweichow Moutais", &[]);
    check("机器人行业", &[]);
    check("“机器人”涨停，机器人（300024）", &["name:everyday_name", "name:everyday_name", "code:alone"]);
    check("TCL", &[]);
    check("https://x.cn/s?q=%E8%B4%B5%E5%B7%9E%E8%8C%85%E5%8F%B0&p=1", &["name:company"]);
}

// engine E8.3
#[test]
fn codes_are_told_from_numbers() {
    for text in ["600519", "buy 600519 now", "（600519）", "６００５１９", "代码：600519。", "600519,000338"] {
        let expected = if text.contains(',') { &["code:alone", "code:alone"][..] } else { &["code:alone"] };
        check(text, expected);
    }
    check("https://x.test/stock/600519.html", &["code:alone"]);
    check("img/600519/day.png", &["code:alone"]);
    for text in [
        "sh600519",
        "SH.600519",
        "600519.SH",
        "600519.XSHG",
        "SZ.000001",
        "000001.sz",
        "600519 CH",
        "601318.SH",
        "bj830799",
        "600519SH",
    ] {
        check(text, &["code:with_exchange"]);
    }
    // Indices, amounts, ids, parts of numbers, aliases.
    for text in [
        "000001.SH",
        "sh000001",
        "quantity 600519",
        "600519 shares",
        "600519股",
        "￥600519",
        "¥ id: 600519",
        "order_600519",
        "#600519",
        "1600519",
        "600519.25",
        "3.600519",
        "600,519",
        "600519%",
        "SHM-600519",
        "a600519",
        "600519e",
        "+600519",
        "ref-600519-x",
        "合同号600519",
        "12:600519",
        "order/600519",
        "12/600519",
        "a3f1600519bc",
        "600518",
    ] {
        check(text, &[]);
    }
    // A number under a key.
    let found = scan(
        r#"{"stock_code":338,"quantity":600519,"amount":"600519","codes":[600519],"volume":[600519],"rows":{"600519":1}}"#,
        Kind::Json,
    );
    let places: Vec<_> = found.findings.iter().map(|f| (f.pointer.as_deref().unwrap_or_default(), f.detail.as_str())).collect();
    assert_eq!(places, [("/stock_code", "number"), ("/codes/0", "alone"), ("/rows/600519", "alone")]);
    let auditor = Auditor::new(&Rules { codes: vec![("510300".into(), Some(Exchange::Sh))], ..Rules::default() });
    assert_eq!(auditor.scan("x", &b"510300.SH 510300.SZ"[..], Kind::Text).total(FindingKind::Code), 1);
}

// spec/seeds.md B14.4, complaint RP-4
#[test]
fn secrets_are_found_in_every_encoding_and_never_shown() {
    let shapes = [
        ("Authorization: Bearer abcdef123456xyz", "secret:named"),
        ("sk-abcdefghijklmnopqrstuvwx", "secret:sk"),
        ("ghp_012345678901234567890123456789ab", "secret:github"),
        ("xoxb-1234567890ab", "secret:slack"),
        ("AKIAABCDEFGHIJKLMNOP", "secret:aws"),
        ("pypi-AgEIcHlwaS5vcmcCJ", "secret:pypi"),
        ("eyJhbGciOi.eyJzdWIi.c2lnbmF0", "secret:signed_token"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIx\n-----END RSA PRIVATE KEY-----", "secret:private_key"),
        ("api_key=abcd12345678", "secret:named"),
        ("url?k=ghp%5F012345678901234567890123456789ab", "secret:github"),
        // base64 of `k: ghp_0123...` and of `sk-proj-...`
        ("azogZ2hwXzAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OWFi", "secret:base64"),
        ("c2stcHJvai1hYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3g=", "secret:base64"),
    ];
    for (text, form) in shapes {
        check(text, &[form]);
        assert!(!scan(text, Kind::Text).findings[0].excerpt.contains("2345"), "{text}");
    }
    for form in [
        KEY.to_owned(),
        "planted%2Fkey%2Bwith%3Dsigns_0123456789".to_owned(),
        "eHBsYW50ZWQva2V5K3dpdGg9c2lnbnNfMDEyMzQ1Njc4OXg=".to_owned(),
    ] {
        let found = scan(format!("a {form} b sk-abcdefghijklmnopqrstuvwx on 2024-03-14"), Kind::Text);
        assert_eq!(found.total(FindingKind::Secret), 2, "{form}: {found:?}");
        let report = serde_json::to_string(&found).unwrap();
        assert!(!report.contains("planted") && !report.contains("abcdefgh") && !report.contains("Q1Njc4"), "{report}");
    }
    for text in [
        "tokens: 1204, max_tokens=99999999a",
        "token: [redacted]",
        "password: correct",
        "secret: they met",
        "api_key=${KEY}x1",
        "next_token: end",
        "risk-0123456789012345678901",
    ] {
        let found = scan(text, Kind::Text);
        assert_eq!(found.total(FindingKind::Secret), 0, "{text}: {found:?}");
    }
    let found = scan(
        r#"{"api_key":"abcd12345678","password":"[redacted]","token":"","consent_token":{"a":1},"max_tokens":12345678}"#,
        Kind::Json,
    );
    assert_eq!(found.totals.len(), 1, "{found:?}");
    assert_eq!((pointers(&found), found.findings.len()), (vec!["/api_key"], 1));
}

#[test]
fn host_paths_and_templates_are_found() {
    check("File \"/Users/alice/run.py\", line 3", &["host_path:home"]);
    check("C:\\Users\\alice\\x", &["host_path:home"]);
    for folder in ["home/alice", "root"] {
        check(&format!("in /{folder}/run.py"), &["host_path:home"]);
    }
    check("/srv/runs/alice/x", &["host_path:root"]);
    check("/srv/runs/alicest https://a.b/Users/x /Users/user/x ~/x", &[]);
    assert!(!scan("see /Users/alice/run.py", Kind::Text).findings[0].excerpt.contains("alice"));
    check(
        "Dear {{ agent.name }}, {stock_name} {{x|upper}} ${HOME} %(name)s {% if x %}",
        &[
            "template:double_braces",
            "template:braces",
            "template:double_braces",
            "template:dollar_brace",
            "template:percent",
            "template:block",
        ],
    );
    check("{x} {{1, 2}} {\"a\": {}} $5 100%(up) {}", &[]);
    // The braces of a program are its own; what it names is not.
    let program = serde_json::json!({"code": "print(f'{stock_name}', 600519)\nx = '600519' # {{a}}"}).to_string();
    assert_eq!(scan(&program, Kind::Json).totals, std::collections::BTreeMap::from([("code", 1)]));
    assert_eq!(scan("<script>var a=`${x}`; b=600519</script><p>x</p>", Kind::Html).findings, []);
    assert_eq!(scan("<script>b</script><p>${x} 600519</p>", Kind::Html).totals.len(), 2);
}

/// A reader that gives so many bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let step = self.1.min(self.0.len()).min(buffer.len());
        buffer[..step].copy_from_slice(&self.0[..step]);
        self.0 = &self.0[step..];
        Ok(step)
    }
}

#[test]
fn pieces_change_nothing() {
    let auditor = Auditor::new(&rules());
    let document = r#"{"a":["贵州茅台","\u8d35\u5dde\u8305\u53f0 \ud83d\ude00"],"b":{"c~/d":"on 2024-03-14, sk-abcdefghijklmnopqrstuvwx"},"n":1.5e3,"t":[true,null]}
{"content":"{\"rows\":[{\"code\":\"600519\"}]}"}
"#;
    let whole = auditor.scan("x", document.as_bytes(), Kind::Jsonl);
    assert_eq!(whole.findings.len(), 5, "{whole:?}");
    assert_eq!(pointers(&whole), ["/a/0", "/a/1", "/b/c~0~1d", "/b/c~0~1d", "/content#/rows/0/code"]);
    assert_eq!(whole.findings.iter().map(|f| f.line).collect::<Vec<_>>(), [1, 1, 1, 1, 2]);
    for step in 1..40 {
        assert_eq!(auditor.scan("x", Drip(document.as_bytes(), step), Kind::Jsonl), whole, "{step} bytes at a time");
    }
}

// Leaks on the border of two pieces of a text, a string and a line that are longer than what is held.
#[test]
fn a_leak_across_a_border_is_found_once() {
    let auditor = Auditor::new(&rules());
    for shift in [0, 1, 5, 100, 2040, 2048, 2060, 4096] {
        let lead = "x ".repeat((1 << 19) - shift / 2 - 6);
        let text = format!("{lead}\n贵州茅台 on 2024-03-14 /Users/alice/ {}\n600519 \n", "y ".repeat(1 << 20));
        let found = auditor.scan("x", text.as_bytes(), Kind::Text);
        let places: Vec<_> =
            found.findings.iter().map(|f| (f.kind.name(), f.line, &text.as_bytes()[f.offset as usize..][..4])).collect();
        let expected = [("name", 2, "贵州".as_bytes()), ("date", 2, b"2024"), ("host_path", 2, b"/Use"), ("code", 3, b"6005")];
        for (found, wanted) in places.iter().zip(&expected) {
            assert_eq!((found.0, found.1), (wanted.0, wanted.1), "{shift}");
            assert!(wanted.2.starts_with(found.2) || found.2.starts_with(&wanted.2[..3]), "{shift} {found:?}");
        }
        assert_eq!(places.len(), 4, "{shift}: {places:?}");
        let json = serde_json::json!([1, { "k": text }]).to_string();
        let found = auditor.scan("x", json.as_bytes(), Kind::Json);
        assert_eq!((pointers(&found), found.findings.len()), (vec!["/1/k"; 4], 4), "{shift}");
        let broken = format!("[\n{}", text.replace('\n', " "));
        assert_eq!(auditor.scan("x", broken.as_bytes(), Kind::Jsonl).findings.len(), 6, "{shift}");
    }
}

#[test]
fn what_is_no_json_is_a_finding_and_searched_all_the_same() {
    let kinds = |text: &[u8], kind| -> Vec<(&'static str, u64)> {
        scan(text, kind).findings.iter().map(|f| (f.kind.name(), f.line)).collect()
    };
    assert_eq!(kinds(b"{}\n{\"a\":\"600519\n{\"b\":\"000338\"}\n", Kind::Jsonl), [("code", 2), ("invalid_json", 2), ("code", 3)]);
    assert_eq!(
        kinds(b"{\"a\": tru3 600519}\n[600519]\n[]]\n", Kind::Jsonl),
        [("invalid_json", 1), ("code", 1), ("invalid_json", 3)]
    );
    assert_eq!(kinds(b"{\"a\":\"600519", Kind::Json), [("code", 1), ("truncated", 1)]);
    assert_eq!(kinds(b"{\"a\":1}\n{\"a\":", Kind::Jsonl), [("truncated", 2)]);
    assert_eq!(kinds(b"", Kind::Json), [("truncated", 1)]);
    assert_eq!(kinds(b"\xef\xbb\xbf{\"a\":1}\r\n\r\n{}\r\n", Kind::Jsonl), []);
    assert_eq!(kinds(b"[\"\xff 600519\"]", Kind::Json), [("invalid_text", 1), ("code", 1)]);
    assert_eq!(kinds(b"\xff 600519", Kind::Text), [("invalid_text", 1), ("code", 1)]);
    let deep = "[".repeat(100_000);
    assert_eq!(kinds(deep.as_bytes(), Kind::Json), [("invalid_json", 1)]);
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    assert_eq!(Auditor::new(&rules()).scan("x", Broken, Kind::Text).total(FindingKind::NotScanned), 1);
}

#[test]
fn lists_are_capped_and_totals_are_not() {
    let auditor = Auditor::new(&Rules { listed: 3, ..rules() });
    let found = auditor.scan("x", "600519 \n".repeat(1000).as_bytes(), Kind::Text);
    assert_eq!((found.findings.len(), found.total(FindingKind::Code)), (3, 1000));
}

// DESIGN: 2 GB in less than 200 MB, more than 200 MB a second. Here for what is linear: the worst texts, a megabyte each.
#[test]
fn a_megabyte_of_the_worst_text_is_quick() {
    let auditor = Auditor::new(&rules());
    for part in [
        "c2st",
        "%41",
        "{{",
        "${a",
        "%(",
        "eyJ",
        "sk-",
        "token=",
        "/Users/",
        "600519.",
        "1-2-",
        "2024",
        "[\"",
        "{\"a\":",
        "\\u8d35",
        "一",
        "March ",
        "\"\\\"",
        "api key \"",
        "字 ",
        "6LS15bee",
        "e8b4",
        "\\\\\\\\u8d35",
        "&#36149;",
        "6 ",
    ] {
        let text = part.repeat((1 << 20) / part.len());
        for kind in [Kind::Text, Kind::Json, Kind::Jsonl, Kind::Html] {
            let started = std::time::Instant::now();
            auditor.scan("x", text.as_bytes(), kind);
            assert!(started.elapsed().as_secs() < 10, "{part:?} as {kind:?} took {:?}", started.elapsed());
        }
    }
}

// engine E8.2: under `permutation` a code of the dataset may be the mask of another one
#[test]
fn codes_that_mask_each_other_are_no_findings() {
    let forms = |text: &str, permuted| -> Vec<String> {
        let found = Auditor::new(&Rules { permuted, ..rules() }).scan("x", text.as_bytes(), Kind::Jsonl);
        found.findings.iter().map(|f| format!("{}:{}", f.kind.name(), f.detail)).collect()
    };
    let line = r#"{"stock_code": 338, "text": "600519 and 000338.SZ, 贵州茅台, 601398.SH"}"#;
    assert_eq!(forms(line, false), ["code:number", "code:alone", "code:with_exchange", "name:company", "code:with_exchange"]);
    // What the dataset does not have is nobody's mask.
    assert_eq!(forms(line, true), ["name:company", "code:with_exchange"]);
}

#[test]
fn rows_of_a_table_tell_row_and_column() {
    let rows =
        "{\"run\":\"a\",\"text\":\"600519\"}\n{\"run\":\"a\",\"messages\":\"[{\\\"content\\\":\\\"on 2024-03-14\\\"}]\"}\n";
    let found = Auditor::new(&rules()).scan("x.parquet", rows.as_bytes(), Kind::Rows);
    let places: Vec<_> =
        found.findings.iter().map(|f| (f.row, f.column.as_deref(), f.pointer.as_deref(), f.line, f.offset)).collect();
    assert_eq!(
        places,
        [(Some(1), Some("text"), Some("/text"), 0, 0), (Some(2), Some("messages"), Some("/messages#/0/content"), 0, 0)]
    );
}

/// What a long artifact gives does not depend on how its batches were searched.
#[test]
fn a_long_artifact_gives_what_its_lines_give() {
    let auditor = Auditor::new(&Rules { listed: u64::MAX, ..rules() });
    let line = |n: usize| match n % 50 {
        7 => format!("{{\"n\":{n},\"t\":\"600519 on 2024-03-14 {}\"}}\n", "x".repeat(n % 700)),
        9 => format!("{{\"n\":{n}, broken 000338\n"),
        _ => format!("{{\"n\":{n},\"rows\":\"[{{\\\"a\\\":\\\"{}\\\"}}]\"}}\n", "plain words ".repeat(n % 40)),
    };
    let (mut text, mut expected) = (String::new(), vec![]);
    for n in 0..20_000 {
        let line = line(n);
        for finding in auditor.scan("x", line.as_bytes(), Kind::Jsonl).findings {
            expected.push((n as u64 + 1, finding.kind, finding.offset + text.len() as u64, finding.excerpt));
        }
        text.push_str(&line);
    }
    let found = auditor.scan("x", text.as_bytes(), Kind::Jsonl);
    let found: Vec<_> = found.findings.into_iter().map(|f| (f.line, f.kind, f.offset, f.excerpt)).collect();
    assert!(text.len() > 4 << 20 && found.len() > 1_000);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}
