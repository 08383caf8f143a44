//! Archives: their members' names and bytes. A thin archive holds only the paths of its members.

use super::ElfError;
use object::read::archive::ArchiveFile;

/// One member.
pub struct Member<'a> {
    pub name: &'a [u8],
    pub content: Content<'a>,
}

/// Where a member's bytes are.
pub enum Content<'a> {
    Here(&'a [u8]),
    /// In the file that the name tells, relative to the archive's folder.
    Elsewhere,
}

/// Whether a file looks like an archive, thin or not.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"!<arch>\n") || is_thin(bytes)
}

/// Whether the members are files of their own.
pub fn is_thin(bytes: &[u8]) -> bool {
    bytes.starts_with(b"!<thin>\n")
}

/// All members, in order; a damaged one ends the list with an error.
pub fn members(bytes: &[u8]) -> Result<Vec<Member<'_>>, ElfError> {
    let archive = ArchiveFile::parse(bytes)?;
    archive
        .members()
        .map(|member| {
            let member = member?;
            let content = if member.is_thin() {
                Content::Elsewhere
            } else {
                Content::Here(member.data(bytes)?)
            };
            Ok(Member { name: member.name(), content })
        })
        .collect()
}
