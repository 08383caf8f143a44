//! Results shared between machines, over real servers on this one: a "machine" is a home, a
//! checkout and a store of its own.

mod concurrency;
mod escape;
mod experiments;
mod faults;
mod hostile;
mod libraries;
mod machine;
mod objects;
mod servers;
mod sharing;
mod transfers;
mod trust;
