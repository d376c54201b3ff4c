//! Market tools: bars, quotes, companies, breadth, sectors.

pub(crate) mod info;
pub(crate) mod kline;
pub(crate) mod overview;
pub(crate) mod price;
pub(crate) mod sector;
