//! The table of failure codes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use traderharness_contract::{ErrorCode, ErrorFamily, FailureClass};

#[test]
fn the_table_is_reviewed_as_a_whole() {
    let mut table = String::new();
    for code in ErrorCode::ALL {
        let (family, class, retry, http) = (code.family(), code.class().as_str(), code.retryable(), code.http_status());
        writeln!(table, "{code} | {family:?} | {class} | retry {retry} | {http} | {} | {}", code.legacy(), code.meaning())
            .unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn names_are_unique_and_read_back() {
    let names: BTreeSet<&str> = ErrorCode::ALL.iter().map(|c| c.as_str()).collect();
    assert_eq!(names.len(), ErrorCode::ALL.len());
    for code in ErrorCode::ALL {
        assert_eq!(code.as_str().parse(), Ok(*code));
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
        assert!(code.meaning().ends_with('.'), "{code}");
    }
    assert!("no_such_code".parse::<ErrorCode>().is_err());
}

#[test]
fn every_code_of_the_enum_is_in_the_list() {
    // `Ord` is the declaration order, so a code outside the list would leave a gap before the last one.
    let last = *ErrorCode::ALL.last().unwrap();
    assert_eq!(last as usize + 1, ErrorCode::ALL.len());
    assert!(ErrorCode::ALL.windows(2).all(|w| w[0] < w[1]));
}

#[test]
fn family_class_and_status_agree() {
    for code in ErrorCode::ALL {
        let http = code.http_status();
        match code.class() {
            FailureClass::BudgetExhausted => assert_eq!(http, 429, "{code}"),
            FailureClass::IdempotencyConflict => assert_eq!(http, 409, "{code}"),
            FailureClass::DependencyUnavailable => assert!(http >= 500 || http == 422, "{code}"),
            _ => assert!((400..500).contains(&http), "{code}"),
        }
        if code.family() == ErrorFamily::Environment {
            assert_ne!(code.class(), FailureClass::InvalidInput, "{code}: a defect of ours is never the caller's input");
        }
    }
}
