//! Six-digit codes in texts. Must leave every number alone that is not clearly a code (engine E8.3).

use super::alias::{CodeMap, exchange_mark, exchange_of};
use super::around::{after, before, digits_end, skip_blanks, stands_alone, word_at, word_before};
use super::text::Span;
use super::{Code, OTHER_CODE};
use crate::SecId;

/// Finds codes of the universe and of companies outside it.
pub(super) struct CodeScan<'a> {
    pub(super) text: &'a str,
    /// Codes of the universe, ascending.
    pub(super) universe: &'a [Code],
    /// Whether a security of the universe has traded before today; the code of another is a code outside the universe.
    pub(super) known: &'a dyn Fn(SecId) -> bool,
    pub(super) map: &'a CodeMap,
}

/// Words after which six digits are a code.
const CODE_WORDS: &[&str] =
    &["code", "codes", "ticker", "tickers", "stock", "stocks", "symbol", "symbols", "securities", "security"];
const CJK_CODE_WORDS: &[&str] = &["代码", "股票", "证券", "个股", "简称"];

impl CodeScan<'_> {
    /// Adds the spans of codes. `names` are the spans of names, sorted by start: a code beside a name is a code.
    pub(super) fn spans(&self, names: &[Span], spans: &mut Vec<Span>) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if !bytes[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let end = digits_end(self.text, at);
            if end - at == 6 {
                spans.extend(self.span(at, end, names));
            }
            at = end;
        }
    }

    fn span(&self, start: usize, end: usize, names: &[Span]) -> Option<Span> {
        let code = Code::parse(&self.text[start..end])?;
        let exchange = exchange_of(code)?;
        let (left, mark_before) = self.mark_before(start);
        let (right, mark_after) = self.mark_after(end);
        let marked = mark_before.or(mark_after);
        if marked.is_some_and(|mark| mark != exchange && mark != "ch") {
            // `000001.SH` is an index.
            return None;
        }
        let (start, end) = match (mark_before, mark_after) {
            (Some(_), Some(_)) => (left, right),
            (Some(_), None) => (left, end),
            (None, Some(_)) => (start, right),
            (None, None) => (start, end),
        };
        if marked.is_none() && !stands_alone(self.text, start, end) {
            return None;
        }
        let sec = self.universe.binary_search(&code).ok().map(|i| SecId(i as u32)).filter(|sec| (self.known)(*sec));
        let with = match sec {
            Some(sec) => self.map.code(sec).to_owned(),
            None if marked.is_some() || self.code_like(start, end, names) => OTHER_CODE.to_owned(),
            None => return None,
        };
        Some(Span { start, end, with })
    }

    /// `SH600519`, `sh.600519`, `SH:600519`.
    fn mark_before(&self, start: usize) -> (usize, Option<&'static str>) {
        let stop = match before(self.text, start) {
            Some('.' | ':' | '-' | '_') => start - 1,
            _ => start,
        };
        let word = word_before(self.text, stop);
        let at = stop - word.len();
        // `X-SH600519` and `C.SH600519` are ids of something else.
        let free = !matches!(before(self.text, at), Some('-' | '_'));
        let mark = (word.len() <= 4 && free).then(|| exchange_mark(&word.to_ascii_lowercase())).flatten();
        (at, mark)
    }

    /// `600519.SH`, `600519.XSHG`, `600519SH`, `600519 CH`.
    fn mark_after(&self, end: usize) -> (usize, Option<&'static str>) {
        let next = match after(self.text, end) {
            Some('.' | ':' | '-' | '_') => end + 1,
            Some(' ') => skip_blanks(self.text, end),
            _ => end,
        };
        let word = word_at(self.text, next);
        let stop = next + word.len();
        let free = !after(self.text, stop).is_some_and(|c| c.is_ascii_alphanumeric());
        let mark = if word.len() > 4 || !free {
            None
        } else if self.text.as_bytes().get(end) == Some(&b' ') {
            matches!(word, "CH" | "SH" | "SZ" | "BJ")
                .then(|| if word == "CH" { "ch" } else { exchange_mark(&word.to_ascii_lowercase()).unwrap_or("ch") })
        } else {
            exchange_mark(&word.to_ascii_lowercase())
        };
        (stop, mark)
    }

    /// Brackets on both sides, a word that announces a code, a name beside it, or nothing else in the text.
    fn code_like(&self, start: usize, end: usize, names: &[Span]) -> bool {
        let (left, right) = (before(self.text, start), after(self.text, end));
        if matches!(left, Some('(' | '（' | '[' | '【' | '「' | '<'))
            && matches!(right, Some(')' | '）' | ']' | '】' | '」' | '>' | ',' | '，' | '、'))
        {
            return true;
        }
        let head = self.text[..start].trim_end_matches([' ', ':', '：', '=', '"', '\'', '(', '（']);
        let word = word_before(head, head.len());
        if CODE_WORDS.iter().any(|w| w.eq_ignore_ascii_case(word)) || CJK_CODE_WORDS.iter().any(|w| head.ends_with(w)) {
            return true;
        }
        let tail = skip_blanks(self.text, end);
        let before_name = names.binary_search_by(|s| s.start.cmp(&tail)).is_ok();
        let ends = self.text[..start].trim_end_matches([' ', '-', '/']).len();
        let until = names.partition_point(|s| s.start < ends);
        let after_name = names[..until].iter().rev().take(4).any(|s| s.end == ends);
        before_name || after_name || self.text.trim().len() == 6
    }
}
