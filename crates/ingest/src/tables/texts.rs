//! Announcements and news. A text without a time is left out.

use super::{Brought, Opened};
use crate::civil;
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::report::FaultKind;
use crate::source::Source;
use traderharness_market::Code;
use traderharness_market::store::{Announcement, NewsItem};

/// `announcements.parquet`.
pub(crate) fn announcements(
    source: &Source,
    universe: &[Code],
    options: &LoadOptions,
) -> Result<Brought<Vec<Announcement>>, IngestError> {
    let mut open = Opened::new(source, "announcements.parquet", options)?;
    let codes = open.codes()?;
    let times = open.dates(&["announcement_time"])?;
    if !open.file.has(&["title"]) {
        open.file.texts(&["title"])?; // the error names the column
    }
    let titles = open.clean_texts(&["title"], false)?;
    let kinds = open.clean_texts(&["ann_type"], false)?;
    let names = open.clean_texts(&["stock_name"], false)?;
    let mut rows = Vec::with_capacity(codes.len());
    for (row, ((code, title), (kind, name))) in codes.into_iter().zip(titles).zip(kinds.into_iter().zip(names)).enumerate() {
        let Some(code) = code else { continue };
        let Some(time) = civil::visible_from(times[row]) else {
            open.faults.text(FaultKind::UndatedAnnouncement, 1, code.as_str());
            continue;
        };
        rows.push(Announcement { code, time, date_only: civil::is_date_only(times[row]), title, kind, name });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &Announcement, b: &Announcement| {
        (a.code, a.time, &a.title, &a.kind, &a.name, a.date_only).cmp(&(b.code, b.time, &b.title, &b.kind, &b.name, b.date_only))
    };
    Ok(open.close(rows, order, |_, _| false, |r| Some(r.code), |r| Some(r.time.day())))
}

/// `news_cls.parquet`. Undated news is left out (complaint LA-2).
pub(crate) fn news(source: &Source, options: &LoadOptions) -> Result<Brought<Vec<NewsItem>>, IngestError> {
    let mut open = Opened::new(source, "news_cls.parquet", options)?;
    let ids = open.file.integers(&["id"])?;
    let times = open.dates(&["display_time"])?;
    if !open.file.has(&["content"]) {
        open.file.texts(&["content"])?; // the error names the column
    }
    let columns = [
        open.clean_texts(&["title"], false)?,
        open.clean_texts(&["content"], true)?,
        open.clean_texts(&["level"], false)?,
        open.clean_texts(&["tags"], false)?,
        open.clean_texts(&["stock_list"], false)?,
    ];
    let mut rows = Vec::with_capacity(ids.len());
    let mut columns = columns.map(Vec::into_iter);
    for (row, id) in ids.into_iter().enumerate() {
        let [title, content, level, tags, stock_list] = columns.each_mut().map(|c| c.next().unwrap_or_default());
        let Some(id) = id else {
            open.faults.text(FaultKind::NullKey, 1, &title);
            continue;
        };
        let Some(time) = civil::visible_from(times[row]) else {
            open.faults.text(FaultKind::UndatedNews, 1, &format!("id {id}"));
            continue;
        };
        if civil::is_date_only(times[row]) {
            open.faults.text(FaultKind::DateOnlyNews, 1, &format!("id {id}"));
        }
        rows.push(NewsItem { id, time, title, content, level, tags, stock_list });
    }
    let order = |a: &NewsItem, b: &NewsItem| {
        (a.time, a.id, &a.title, &a.content, &a.level, &a.tags, &a.stock_list).cmp(&(
            b.time,
            b.id,
            &b.title,
            &b.content,
            &b.level,
            &b.tags,
            &b.stock_list,
        ))
    };
    Ok(open.close(rows, order, |a, b| (a.time, a.id) == (b.time, b.id), |_| None, |r| Some(r.time.day())))
}
