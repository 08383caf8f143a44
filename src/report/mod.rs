//! What people and machines are shown. In: records, manifests, decisions, comparisons. Out: text
//! and JSON.

pub mod decisions;
pub mod demangle;
pub mod explanation;
pub mod findings;
pub mod functions;
pub mod history;
pub mod json;
pub mod junit;
pub mod metrics;
pub mod page;
pub mod program;
pub mod roff;
pub mod settings;
pub mod setup;
pub mod shown;
pub mod stats;
pub mod style;
pub mod suite;
pub mod text;
pub mod trace;
pub mod transfer;
pub mod trial;
pub mod units;
