//! What `tasting --version` says: the version, the commit that it was built from, and what this
//! build can do.

pub const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), env!("TASTING_COMMIT_SUFFIX"));

pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    env!("TASTING_COMMIT_SUFFIX"),
    "\nprocessor: ",
    env!("TASTING_PROCESSOR"),
    "\nfeatures: watch, trace, ast, objects; remote: file, http, https, redis, rediss, s3",
);
