//! All inputs of a link, with their addresses. In: the linker's map, while it is written, and the
//! files that were opened early. Out: the placement, the objects with the addresses of their
//! sections, and how their symbols resolve.

use super::early::{Early, Records};
use super::files::Files;
use super::finished::Finished;
use super::input::Input;
use super::inputs::Groups;
use super::lto::{self, Optimised};
use super::map;
use super::map_text::MapText;
use super::symbols::Definitions;
use crate::model::Placement;
use crate::process::Settings;
use crate::process::linker::LinkerKind;
use std::mem;
use std::sync::OnceLock;

/// The objects of a binary in their places.
pub struct Linked<'f, 'e> {
    pub kind: LinkerKind,
    /// Some of the code was made by the linker.
    pub is_optimised: bool,
    pub placement: Placement<'f>,
    pub files: &'f Files<'e>,
    pub inputs: Vec<Input<'f>>,
    pub definitions: Definitions,
}

impl<'f, 'e: 'f> Linked<'f, 'e> {
    /// Reads the map to its end, and gives the objects that it names their places. The error is the
    /// reason why that cannot be done.
    pub fn read(
        settings: &Settings,
        map: &'f MapText<'f>,
        files: &'f OnceLock<Files<'e>>,
        (early, records): (&'e Early, Records<'f>),
        finished: &Finished,
    ) -> Result<Self, String> {
        if map.feed().after(None).is_none() {
            return Err("the linker wrote no map that could be read".to_owned());
        }
        let (kind, mut placement) =
            map::read(map.feed()).map_err(|error| format!("the linker's map: {error}"))?;
        map.wait();
        let is_optimised = lto::remove_plugin_objects(&mut placement);
        let sources = if is_optimised { lto::sources(early) } else { Vec::new() };
        let groups = Groups::new(&placement);
        let opened = groups.open(&sources, early, settings).map_err(|error| error.to_string())?;
        let files = files.get_or_init(|| opened);
        let Records { mut objects, names } = records;
        let mut inputs =
            groups.read(files, &mut objects, finished).map_err(|error| error.to_string())?;
        if is_optimised {
            let optimised = Optimised::read(files, &sources)?;
            let count = optimised.inputs.len();
            let members = if early.has_objects_as_members { count } else { optimised.members };
            inputs.extend(optimised.inputs);
            lto::check(&inputs, count, members, finished.binary()?)?;
        }
        let definitions = Definitions::collect(&mut inputs, names);
        // Those that were not linked: their memory is given back when the process ends.
        mem::forget(objects);
        Ok(Linked { kind, is_optimised, placement, files, inputs, definitions })
    }
}
