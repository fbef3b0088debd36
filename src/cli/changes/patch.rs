//! The text of a patch, as git writes and reads it.

use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, DiffOp, group_diff_ops};
use undertext::difference;

/// The lines shown before and after a change.
const AROUND: usize = 3;

/// A file before or after.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    /// As git writes it.
    pub(super) mode: u32,
    /// What it holds.
    pub(super) text: &'a [u8],
}

impl Side<'_> {
    /// Whether it is a plain file, a link, or another kind.
    fn kind(self) -> u32 {
        self.mode & 0o170_000
    }
}

/// Writes how a file changed, came or went.
pub(super) fn shown(path: &[u8], old: Option<Side<'_>>, new: Option<Side<'_>>, out: &mut Vec<u8>) {
    if let (Some(before), Some(after)) = (old, new)
        && before.kind() != after.kind()
    {
        // Of another kind it is another file.
        shown(path, old, None, out);
        shown(path, None, new, out);
        return;
    }
    let (a, b) = (quoted(b"a/", path), quoted(b"b/", path));
    out.extend([b"diff --git ", &a[..], b" ", &b[..], b"\n"].concat());
    let mut mode = |what: &str, side: Side<'_>| {
        out.extend(format!("{what} mode {:06o}\n", side.mode).bytes());
    };
    match (old, new) {
        (None, Some(new)) => mode("new file", new),
        (Some(old), None) => mode("deleted file", old),
        (Some(old), Some(new)) if old.mode != new.mode => {
            mode("old", old);
            mode("new", new);
        }
        _ => {}
    }
    let before = old.map_or(&b""[..], |side| side.text);
    let after = new.map_or(&b""[..], |side| side.text);
    let (before, after) = (lines(before), lines(after));
    if before == after {
        return;
    }
    let end = if path.contains(&b' ') { "\t\n" } else { "\n" };
    let name = |side: Option<Side<'_>>, name: Vec<u8>| match side {
        Some(_) => [&name[..], end.as_bytes()].concat(),
        None => b"/dev/null\n".to_vec(),
    };
    out.extend([b"--- ", &name(old, a)[..], b"+++ ", &name(new, b)[..]].concat());
    write_hunks(&before, &after, AROUND, out);
}

/// What differs between two texts, with so many lines around each change.
pub(crate) fn hunks(before: &[u8], after: &[u8], around: usize) -> Vec<u8> {
    let mut out = Vec::new();
    write_hunks(&lines(before), &lines(after), around, &mut out);
    out
}

fn write_hunks(before: &[&[u8]], after: &[&[u8]], around: usize, out: &mut Vec<u8>) {
    let operations = difference::operations(before, after);
    for hunk in group_diff_ops(operations, around) {
        write_hunk(&hunk, before, after, out);
    }
}

fn write_hunk(hunk: &[DiffOp], before: &[&[u8]], after: &[&[u8]], out: &mut Vec<u8>) {
    out.extend(format!("{}\n", UnifiedHunkHeader::new(hunk)).bytes());
    for change in hunk
        .iter()
        .flat_map(|operation| operation.iter_changes(before, after))
    {
        out.push(match change.tag() {
            ChangeTag::Equal => b' ',
            ChangeTag::Delete => b'-',
            ChangeTag::Insert => b'+',
        });
        let line = change.value();
        out.extend(line);
        if !line.ends_with(b"\n") {
            out.extend(b"\n\\ No newline at end of file\n");
        }
    }
}

/// Names a file whose change is not shown. Without a heading of its own, git reads past the line.
pub(super) fn named(path: &[u8], old: bool, new: bool, out: &mut Vec<u8>) {
    let name = |there: bool, side: &[u8]| {
        if there {
            quoted(side, path)
        } else {
            b"/dev/null".to_vec()
        }
    };
    let (a, b) = (name(old, b"a/"), name(new, b"b/"));
    out.extend([b"Binary files ", &a[..], b" and ", &b[..], b" differ\n"].concat());
}

/// The lines of a text, each with its end.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A path in git's quotes, if it needs any.
fn quoted(side: &[u8], path: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| !byte.is_ascii_control() && !b"\"\\".contains(byte);
    let name = [side, path].concat();
    if path.iter().all(is_plain) {
        return name;
    }
    let mut quoted = vec![b'"'];
    for byte in name {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            byte if byte.is_ascii_control() => quoted.extend(format!("\\{byte:03o}").bytes()),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}
