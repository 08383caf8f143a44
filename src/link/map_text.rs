//! The text of the linker's map, read while the linker writes it. In: the source of the map, and a
//! signal that the linker has ended. Out: blocks of whole lines, each as soon as it is complete.

use super::map::feed::{Bytes, Feed};
use super::map_source::MapSource;
use crate::process::sys::Memory;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So much is read at once, at least.
const PIECE: u64 = 256 << 10;

/// How often we look for more.
const INTERVAL: Duration = Duration::from_millis(3);

/// A map that is being written.
pub struct MapText<'m> {
    source: &'m MapSource,
    feed: Feed<'m>,
    progress: Arc<Progress>,
}

/// What linker and reader tell each other.
#[derive(Default)]
struct Progress {
    /// The map is read while it is written.
    is_live: bool,
    state: Mutex<ReaderState>,
    ended: Condvar,
}

#[derive(Default)]
struct ReaderState {
    /// The linker has ended; whether it was asked for the map when it succeeded.
    end: Option<bool>,
    /// How much was read.
    read: u64,
    /// The start of a line whose end is still to be written.
    line: Vec<u8>,
}

impl<'m> MapText<'m> {
    /// The map from there. A linker that is a script may run another one twice: then `is_live` is
    /// to be false, and the map is read at the end.
    pub fn new(source: &'m MapSource, is_live: bool) -> Self {
        let progress = Arc::new(Progress { is_live, ..Progress::default() });
        let reader = Arc::clone(&progress);
        MapText { source, feed: Feed::new(move || reader.next(source)), progress }
    }

    /// To be called when the linker has ended.
    pub fn end(&self, is_written: bool) {
        let mut state = self.progress.lock();
        // The first word counts.
        state.end.get_or_insert(is_written);
        self.progress.ended.notify_all();
    }

    /// Somebody is asked to write it.
    pub fn is_expected(&self) -> bool {
        !matches!(self.source, MapSource::None)
    }

    /// The text.
    pub fn feed(&self) -> &Feed<'m> {
        &self.feed
    }

    /// Waits for the end.
    pub fn wait(&self) {
        self.feed.pieces().for_each(drop);
    }

    /// Waits for the end. The text ends with a line, and is what was written: should the linker
    /// have run twice, we may have read the start of one map and the end of another.
    pub fn is_whole(&self) -> bool {
        let pieces: Vec<&[u8]> = self.feed.pieces().map(|piece| &**piece).collect();
        let ends = pieces.last().is_some_and(|piece| piece.ends_with(b"\n"))
            && self.progress.lock().line.is_empty();
        ends && match self.source {
            MapSource::None => false,
            MapSource::Users(..) => true,
            MapSource::Ours(..) if !self.progress.is_live => true,
            MapSource::Ours(memory, _) => {
                memory.content().is_ok_and(|content| consists_of(&content, &pieces))
            }
        }
    }
}

fn consists_of(mut content: &[u8], pieces: &[&[u8]]) -> bool {
    let all = pieces.iter().all(|piece| {
        let rest = content.strip_prefix(*piece);
        content = rest.unwrap_or(content);
        rest.is_some()
    });
    all && content.is_empty()
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece. Waits for it; gives nothing at the end.
    fn next(&self, source: &MapSource) -> Option<Bytes> {
        let mut state = self.lock();
        loop {
            match (source, state.end) {
                (MapSource::None, _) | (_, Some(false)) => return None,
                (MapSource::Ours(memory, _), end) if self.is_live => {
                    let lines = state.read_lines(memory, end.is_some());
                    match lines {
                        Ok(lines) if !lines.is_empty() => return Some(Bytes::Read(lines)),
                        Ok(_) if end.is_none() => {}
                        // What is missing then is noticed at the end.
                        _ => return None,
                    }
                    let waited = self.ended.wait_timeout(state, INTERVAL);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                (_, None) => state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner),
                (_, Some(true)) if state.read > 0 => return None,
                (_, Some(true)) => {
                    state.read = 1;
                    return source.read().map(Bytes::Mapped);
                }
            }
        }
    }
}

impl ReaderState {
    /// The whole lines that were written meanwhile, if they are many, or the last.
    fn read_lines(&mut self, memory: &Memory, is_last: bool) -> io::Result<Vec<u8>> {
        let new = memory.length()?.saturating_sub(self.read);
        if new == 0 || (new < PIECE && !is_last) {
            return Ok(Vec::new());
        }
        let mut text = std::mem::take(&mut self.line);
        self.read += memory.read(&mut text, new)? as u64;
        let end = memchr::memrchr(b'\n', &text).map_or(0, |last| last + 1);
        self.line = text.split_off(end);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::arguments::LinkerJob;
    use crate::process::linker::LinkerKind;
    use std::fs::{self, File};
    use std::io::Write;
    use std::sync::mpsc;
    use std::thread;

    fn ours() -> (MapSource, File) {
        let source = MapSource::choose(&LinkerJob::default(), Some(LinkerKind::Gold));
        let MapSource::Ours(memory, _) = &source else { panic!("no memory for a map") };
        let file = File::create(memory.path()).unwrap();
        (source, file)
    }

    fn lines(text: &MapText) -> Vec<u8> {
        text.feed().pieces().flat_map(|piece| piece.to_vec()).collect()
    }

    #[test]
    fn a_map_is_read_while_it_is_written() {
        let (source, mut file) = ours();
        let text = MapText::new(&source, true);
        let whole = "a line of the map that is to be written\n".repeat(10_000);
        // Neither part begins or ends with a line, and the first is enough for a piece.
        let (first, rest) = whole.as_bytes().split_at(PIECE as usize + 11);
        let (has_read, wait_for_piece) = mpsc::channel();
        thread::scope(|scope| {
            let text = &text;
            scope.spawn(move || {
                file.write_all(first).unwrap();
                wait_for_piece.recv().unwrap();
                file.write_all(rest).unwrap();
                text.end(true);
            });
            let first = text.feed().after(None);
            has_read.send(()).unwrap();
            let second = text.feed().after(first);
            assert!(
                [first, second]
                    .iter()
                    .all(|piece| piece.is_some_and(|piece| piece.ends_with(b"\n")))
            );
        });
        assert_eq!(lines(&text), whole.as_bytes());
        assert!(text.is_whole());
    }

    #[test]
    fn a_map_cut_within_a_line_is_incomplete() {
        let (source, mut file) = ours();
        let text = MapText::new(&source, true);
        file.write_all(b"one\ntwo").unwrap();
        text.end(true);
        assert_eq!(lines(&text), b"one\n");
        assert!(!text.is_whole());
    }

    #[test]
    fn a_map_that_is_written_anew_is_noticed() {
        let (source, mut file) = ours();
        let MapSource::Ours(memory, _) = &source else { panic!("no memory for a map") };
        let lines = PIECE as usize / 4;
        let (first, second) = ("first\n".repeat(lines), "other\n".repeat(lines + 1));
        let text = MapText::new(&source, true);
        file.write_all(first.as_bytes()).unwrap();
        assert!(text.feed().after(None).is_some());
        File::create(memory.path()).unwrap().write_all(second.as_bytes()).unwrap();
        text.end(true);
        assert!(!text.is_whole());
    }

    #[test]
    fn the_map_of_a_script_is_read_last() {
        let (source, mut file) = ours();
        let MapSource::Ours(memory, _) = &source else { panic!("no memory for a map") };
        let text = MapText::new(&source, false);
        file.write_all(b"one\n".repeat(PIECE as usize).as_slice()).unwrap();
        File::create(memory.path()).unwrap().write_all(b"two\n").unwrap();
        text.end(true);
        assert_eq!(lines(&text), b"two\n");
        assert!(text.is_whole());
    }

    #[test]
    fn without_a_map_nothing_is_waited_for() {
        let text = MapText::new(&MapSource::None, true);
        assert!(text.feed().after(None).is_none() && !text.is_whole());
        let (source, _file) = ours();
        let text = MapText::new(&source, true);
        text.end(false);
        assert!(text.feed().after(None).is_none() && !text.is_whole());
    }

    #[test]
    fn the_users_map_is_read_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.map");
        let source = MapSource::Users(path.clone(), None);
        let text = MapText::new(&source, true);
        fs::write(&path, "one\ntwo\n").unwrap();
        text.end(true);
        assert_eq!(lines(&text), b"one\ntwo\n");
        assert!(text.is_whole());
    }
}
