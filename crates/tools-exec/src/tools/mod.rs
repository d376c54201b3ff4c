//! The tools: one file each, with arguments, output, published data, handler and tests.

pub mod complete_phase;
pub mod execute_code;
pub mod finish_day;
pub mod get_portfolio;
pub mod get_position;
pub mod list_conditional_orders;
pub mod manage_conditional_order;
pub mod place_order;
pub(crate) mod shown;
