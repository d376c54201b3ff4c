//! Screening tools: stocks by filters, stocks by behavioural stage. (The sector summary lives with the market tools.)

pub(crate) mod behavior;
pub(crate) mod cycle;
pub(crate) mod stocks;
