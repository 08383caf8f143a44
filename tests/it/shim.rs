//! The build is untouched: whatever the real tools do, the shims do, and nothing more than a record
//! in each object and a manifest beside each binary shows that they were there.

mod build_systems;
mod by_products;
mod bytes;
mod caches;
mod cases;
mod editors;
mod features;
mod files;
mod finding;
mod messages;
mod names;
mod objects;
mod probes;
mod record;
mod sections;
mod signals;
mod twins;
mod wrappers;
