//! Columns of the generated tables, in the order of the recorded sets.

use crate::table_out::Columns;
use crate::table_out::OutKind::{Flag, Float, Integer, Text, Time};

pub(super) const DAILY: Columns = &[
    ("stock_code", Text),
    ("date", Time),
    ("open", Float),
    ("high", Float),
    ("low", Float),
    ("close", Float),
    ("volume", Integer),
    ("amount", Float),
];
pub(super) const MINUTE: Columns = &[
    ("stock_code", Text),
    ("date", Time),
    ("datetime", Time),
    ("open", Float),
    ("high", Float),
    ("low", Float),
    ("close", Float),
    ("volume", Integer),
    ("amount", Float),
];
pub(super) const INDEX: Columns = &[
    ("date", Time),
    ("open", Float),
    ("high", Float),
    ("low", Float),
    ("close", Float),
    ("volume", Integer),
    ("amount", Float),
    ("index_code", Text),
];
pub(super) const NEWS: Columns = &[
    ("id", Integer),
    ("title", Text),
    ("content", Text),
    ("display_time", Time),
    ("ctime", Integer),
    ("level", Text),
    ("tags", Text),
    ("stock_list", Text),
];
pub(super) const ANNOUNCEMENTS: Columns =
    &[("stock_code", Text), ("stock_name", Text), ("title", Text), ("announcement_time", Time), ("ann_type", Text)];
pub(super) const FUNDAMENTALS: Columns = &[
    ("stock_code", Text),
    ("pub_date", Text),
    ("stat_date", Text),
    ("roe", Float),
    ("net_profit_margin", Float),
    ("gross_margin", Float),
    ("net_profit", Float),
    ("eps", Float),
    ("eps_ttm", Float),
    ("revenue", Float),
    ("bvps", Float),
    ("yoy_net_profit", Float),
    ("yoy_eps", Float),
    ("yoy_equity", Float),
    ("yoy_asset", Float),
    ("yoy_pni", Float),
];
pub(super) const SEGMENTS: Columns = &[
    ("stock_code", Text),
    ("report_date", Text),
    ("pub_date", Text),
    ("segment_type", Text),
    ("segment_name", Text),
    ("revenue", Float),
    ("revenue_pct", Float),
    ("gross_margin", Float),
];
pub(super) const VALUATION: Columns = &[
    ("stock_code", Text),
    ("date", Time),
    ("turn", Float),
    ("pe_ttm", Float),
    ("pb_mrq", Float),
    ("ps_ttm", Float),
    ("is_st", Flag),
];
pub(super) const DIVIDENDS: Columns = &[
    ("stock_code", Text),
    ("ann_date", Text),
    ("record_date", Text),
    ("ex_date", Text),
    ("bonus_shares", Float),
    ("transfer_shares", Float),
    ("cash_dividend", Float),
    ("rights_shares", Float),
    ("rights_price", Float),
    ("progress", Text),
];
pub(super) const SECURITIES: Columns =
    &[("stock_code", Text), ("name", Text), ("aliases", Text), ("industry", Text), ("board", Text), ("list_date", Text)];
