//! Market tools: bars, quotes, companies, breadth, sectors.

pub(crate) mod kline;
pub(crate) mod price;
