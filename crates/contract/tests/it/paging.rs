//! Whole-record paging and cursors.

use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;
use traderharness_contract::budget::{
    Cursor, CursorFault, CursorScope, DocumentFault, LIST_ROOM, ListRequest, Page, PageOrder, PageRequest, Paging, RESULT_LIMIT,
    Span, fit_document, fit_records,
};
use traderharness_contract::json::characters;

fn build(page: &[Value], paging: &Paging) -> Value {
    json!({"success": true, "items": page, "paging": paging})
}

/// Makes a page and checks what holds for every page.
fn page(records: &[Value], request: PageRequest) -> Page {
    let page = fit_records(records, request, build);
    assert!(characters(&page.text) <= request.limit, "{} > {}", characters(&page.text), request.limit);
    if request.limit > 0 {
        serde_json::from_str::<Value>(&page.text).unwrap();
    }
    assert_eq!(page.paging.next_offset.is_none(), page.paging.complete);
    page
}

/// Walks all pages, checks each, returns the records in the order they came.
fn walk(records: &[Value], request: PageRequest) -> Vec<Value> {
    let mut request = request;
    let mut seen = Vec::new();
    loop {
        let page = page(records, request);
        let items = page.envelope["items"].as_array().cloned().unwrap_or_default();
        assert_eq!(items.len(), page.paging.returned);
        seen.extend(items);
        match page.paging.next_offset {
            Some(next) => {
                assert!(next > request.offset, "a page must go on");
                request.offset = next;
            }
            None => return seen,
        }
    }
}

fn numbered(count: usize, width: usize) -> Vec<Value> {
    (0..count).map(|i| json!({"n": i, "text": "x".repeat(width)})).collect()
}

// seed B9.3
#[test]
fn forty_wide_records_take_four_pages() {
    let records = numbered(40, 695);
    let mut starts = vec![];
    let mut request = PageRequest::default();
    loop {
        let page = page(&records, request);
        starts.push((page.paging.offset, page.paging.returned, page.paging.next_offset));
        let Some(next) = page.paging.next_offset else { break };
        request.offset = next;
    }
    assert_eq!(starts, [(0, 13, Some(13)), (13, 13, Some(26)), (26, 13, Some(39)), (39, 1, None)]);
}

// complaint TR-2
#[test]
fn walking_the_pages_gives_each_record_once() {
    let records = numbered(276, 90);
    let first = page(&records, PageRequest::default());
    assert_eq!((first.paging.total, first.paging.complete), (276, false));
    assert!(first.paging.returned < 276);
    assert_eq!(walk(&records, PageRequest::default()), records);
    assert_eq!(walk(&records, PageRequest { max_records: Some(10), ..PageRequest::default() }), records);
}

#[test]
fn an_offset_past_the_end_is_an_empty_complete_page() {
    for (count, offset) in [(40, 40), (40, 99), (0, 0), (0, 5), (3, usize::MAX)] {
        for order in [PageOrder::FirstFirst, PageOrder::OldestFirst] {
            let page = page(&numbered(count, 5), PageRequest { offset, order, ..PageRequest::default() });
            assert_eq!((page.paging.returned, page.paging.offset, page.paging.complete), (0, offset, true));
        }
    }
}

// complaint TR-9, seed B9.4
#[test]
fn a_record_longer_than_a_page_is_cut_in_its_field_and_flagged() {
    let mut records = numbered(3, 10);
    records[1]["text"] = "\u{1F680}公".repeat(10_000).into();
    let first = page(&records, PageRequest::default());
    assert_eq!((first.paging.returned, first.paging.oversize_record), (1, None));
    let second = page(&records, PageRequest { offset: 1, ..PageRequest::default() });
    assert_eq!((second.paging.returned, second.paging.oversize_record, second.paging.next_offset), (1, Some(1), Some(2)));
    let text = second.envelope["items"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("of 20000 characters]"), "{}", &text[text.len() - 60..]);
    // As much of the text as there is room for, not a token of it.
    assert!(characters(&second.text) > RESULT_LIMIT - 10, "{}", characters(&second.text));
    assert_eq!(page(&records, PageRequest { offset: 2, ..PageRequest::default() }).paging.oversize_record, None);
}

#[test]
fn a_record_that_is_one_long_list_still_fits() {
    let records = vec![json!({"rows": (0..5_000).collect::<Vec<_>>()}), json!({"rows": []})];
    let first = page(&records, PageRequest::default());
    assert_eq!((first.paging.returned, first.paging.oversize_record, first.paging.next_offset), (1, Some(0), Some(1)));
}

// seed B9.6
#[test]
fn rows_from_oldest_to_newest_start_with_the_newest() {
    let records = numbered(500, 60);
    let request = PageRequest { order: PageOrder::OldestFirst, ..PageRequest::default() };
    let first = page(&records, request);
    let items = first.envelope["items"].as_array().unwrap();
    assert_eq!(items.last(), records.last());
    assert_eq!(items[0], records[500 - first.paging.returned]);
    let second = page(&records, PageRequest { offset: first.paging.returned, ..request });
    assert_eq!(second.envelope["items"].as_array().unwrap().last().unwrap()["n"], 500 - first.paging.returned - 1);
}

#[test]
fn tiny_limits_still_go_on() {
    let records = numbered(5, 300);
    for limit in 0..400 {
        let page = page(&records, PageRequest { limit, ..PageRequest::default() });
        assert_eq!(page.paging.returned, 1);
    }
}

/// Reads a document page by page; checks every page.
fn read(document: &str, limit: usize) -> Vec<usize> {
    let (mut offset, mut whole, mut sizes) = (0, String::new(), vec![]);
    loop {
        let page = fit_document(document, offset, limit, |content, span| {
            json!({"status": "ok", "content": content, "total_chars": span.total, "offset": span.offset, "next_offset": span.next_offset})
        })
        .unwrap();
        assert!(characters(&page.text) <= limit);
        whole.push_str(page.envelope["content"].as_str().unwrap());
        sizes.push(page.span.returned);
        match page.span.next_offset {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(whole, document);
    sizes
}

// seed B10
#[test]
fn pages_of_a_document_put_together_are_the_document() {
    let plain = "公司\u{1F680} text. ".repeat(12_000);
    let sizes = read(&plain, RESULT_LIMIT);
    assert!(sizes[0] > 9_800, "{sizes:?}");
    // Each newline costs two characters in JSON.
    let dense = read(&"\n".repeat(30_000), RESULT_LIMIT);
    assert!(dense[0] < 5_000, "{dense:?}");
    assert_eq!(read("", RESULT_LIMIT), [0]);
    assert_eq!(read("short", RESULT_LIMIT), [5]);
}

#[test]
fn a_document_offset_past_the_end_is_a_fault() {
    let build = |content: &str, _: &Span| json!({ "content": content });
    assert_eq!(fit_document("abc", 3, 100, build), Err(DocumentFault::PastEnd { offset: 3, total: 3 }));
    assert_eq!(fit_document("abc", 0, 10, build), Err(DocumentFault::NoRoom { limit: 10 }));
    assert_eq!(fit_document("abc", 2, 100, build).map(|p| p.text), Ok(r#"{"content": "c"}"#.to_owned()));
}

fn scope(args: &Value) -> CursorScope {
    CursorScope::new("get_news", args, "session 3 open_1")
}

#[test]
fn a_cursor_comes_back_for_its_own_query_only() {
    let args = json!({"days": 3, "keyword": "chip"});
    let cursor = Cursor { offset: 40 }.encode(&scope(&args));
    assert!(cursor.bytes().all(|b| b.is_ascii_lowercase()), "{cursor}");
    let decode = |cursor: &str, scope: &CursorScope| Cursor::decode(cursor, scope).map(|c| c.offset);
    assert_eq!(decode(&cursor, &scope(&args)), Ok(40));
    // Key order and the cursor itself are no part of the query.
    assert_eq!(decode(&cursor, &scope(&json!({"keyword": "chip", "cursor": cursor, "days": 3}))), Ok(40));
    assert_eq!(decode(&cursor, &scope(&json!({"days": 4, "keyword": "chip"}))), Err(CursorFault::OtherQuery));
    assert_eq!(decode(&cursor, &CursorScope::new("get_news", &args, "session 3 mid_am")), Err(CursorFault::OtherClock));
    assert_eq!(decode(&cursor, &CursorScope::new("get_kline", &args, "session 3 open_1")), Err(CursorFault::OtherTool));
    for damaged in [
        "",
        "c",
        "40",
        "null",
        "D-3",
        &cursor[1..],
        &cursor[..cursor.len() - 1],
        &format!("{cursor}b"),
        &cursor.replace('c', "d"),
        "c公公公公公公公公公公公公公公公公",
    ] {
        assert_eq!(decode(damaged, &scope(&args)), Err(CursorFault::Malformed), "{damaged}");
    }
}

#[test]
fn a_refused_cursor_says_how_to_go_on() {
    for fault in [CursorFault::Malformed, CursorFault::OtherTool, CursorFault::OtherQuery, CursorFault::OtherClock] {
        let failure = fault.failure("get_news");
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::InvalidCursor, true));
        assert!(failure.instruction.contains("without `cursor`"), "{}", failure.instruction);
        assert!(failure.message.starts_with("The cursor"), "{}", failure.message);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_record_is_lost_or_doubled(widths in proptest::collection::vec(0_usize..400, 0..40), limit in 500_usize..2_000, newest in any::<bool>()) {
        let records: Vec<Value> = widths.iter().enumerate().map(|(i, w)| json!({"n": i, "text": "公".repeat(*w)})).collect();
        let order = if newest { PageOrder::OldestFirst } else { PageOrder::FirstFirst };
        let mut seen: Vec<u64> = walk(&records, PageRequest { limit, order, ..PageRequest::default() }).iter().map(|r| r["n"].as_u64().unwrap()).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..widths.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn every_offset_survives_its_cursor(offset: u64, args in "[a-z]{0,9}") {
        let scope = scope(&json!({"q": args}));
        prop_assert_eq!(Cursor::decode(&Cursor { offset }.encode(&scope), &scope), Ok(Cursor { offset }));
    }

    #[test]
    fn no_other_text_is_a_cursor(text in "\\PC{0,40}") {
        prop_assert_eq!(Cursor::decode(&text, &scope(&json!({}))), Err(CursorFault::Malformed));
    }
}

/// Pages of a list by following cursors: how many records each has.
fn listed(widths: &[usize], max_records: usize) -> Vec<usize> {
    let (mut cursor, mut sizes, mut seen) = (None::<String>, vec![], vec![]);
    loop {
        let request = ListRequest { tool: "t", query: json!("q"), clock: "now", cursor: cursor.as_deref(), max_records };
        let page = request.page_that_fits(widths, |width| json!({ "text": "x".repeat(*width) })).unwrap();
        assert_eq!(page.total, widths.len());
        assert_eq!(page.complete, cursor.is_none() && page.records.len() == widths.len());
        let text: usize = page.records.iter().map(|r| characters(&r.to_string())).sum();
        assert!(text <= LIST_ROOM || page.records.len() == 1, "{text}");
        sizes.push(page.records.len());
        seen.extend(page.records.iter().map(|r| r["text"].as_str().map_or(0, str::len)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            assert_eq!(seen, widths, "each record once, whole, in order");
            return sizes;
        }
    }
}

// complaints TR-2, TR-9
#[test]
fn a_list_comes_in_pages_of_whole_records_that_fit() {
    assert_eq!(listed(&[], 5), [0]);
    assert_eq!(listed(&[10; 12], 5), [5, 5, 2]);
    assert_eq!(listed(&[1_500; 12], usize::MAX), [5, 5, 2]);
    // One that is longer than a page comes alone, between its neighbours.
    assert_eq!(listed(&[10, 20_000, 10], 9), [1, 1, 1]);
    assert_eq!(listed(&[10; 3], 0), [1, 1, 1], "a page has at least one record");
}

#[test]
fn a_list_refuses_the_cursor_of_another_query_tool_or_clock() {
    let ask = |tool, query: &str, clock, cursor| {
        ListRequest { tool, query: json!(query), clock, cursor, max_records: 2 }.page(vec![1, 2, 3]).map_err(|f| f.code)
    };
    let next = ask("t", "q", "now", None).unwrap().next_cursor.unwrap();
    assert_eq!(ask("t", "q", "now", Some(next.as_str())).unwrap().records, [3]);
    for (tool, query, clock) in [("u", "q", "now"), ("t", "r", "now"), ("t", "q", "then")] {
        assert_eq!(ask(tool, query, clock, Some(next.as_str())), Err(ErrorCode::InvalidCursor), "{tool} {query} {clock}");
    }
    assert_eq!(ask("t", "q", "now", Some("c")), Err(ErrorCode::InvalidCursor));
}
