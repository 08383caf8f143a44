//! What people and machines are shown. In: records and manifests. Out: text and JSON.

pub mod demangle;
pub mod json;
pub mod shown;
pub mod text;
