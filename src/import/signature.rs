//! Files whose first bytes say what they are, and that it is no recording.

/// First bytes, and what a file is that begins with them.
const KNOWN: [(&[u8], &str); 15] = [
    (b"\x1f\x8b", "it is compressed with gzip: unpack it first"),
    (
        b"\x28\xb5\x2f\xfd",
        "it is compressed with zstd: unpack it first",
    ),
    (b"\xfd7zXZ\0", "it is compressed with xz: unpack it first"),
    (b"BZh", "it is compressed with bzip2: unpack it first"),
    (b"PK\x03\x04", "it is a zip archive: unpack it first"),
    (b"PK\x05\x06", "it is an empty zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive: unpack it first"),
    (b"SQLite format 3\0", "it is an SQLite database"),
    (b"\x89PNG\r\n", "it is a PNG image"),
    (b"\xff\xd8\xff", "it is a JPEG image"),
    (b"GIF8", "it is a GIF image"),
    (b"%PDF-", "it is a PDF document"),
    (b"\x7fELF", "it is a program"),
    (b"\xff\xfe", "it is UTF-16 text: UTF-8 is read"),
    (b"\xfe\xff", "it is UTF-16 text: UTF-8 is read"),
];

/// Where a tar archive says that it is one.
const TAR: usize = 257;

/// How many bytes are looked at for one that no text has.
const LOOKED_AT: usize = 1 << 10;

/// How the first member of an archive is called that inspect wrote.
const INSPECT: [&[u8]; 5] = [
    b"_journal/",
    b"samples/",
    b"header.json",
    b"summaries.json",
    b"reductions.json",
];

/// What a file with this beginning is, if its first bytes say that it is no text.
pub(super) fn of(beginning: &[u8]) -> Option<&'static str> {
    if beginning.is_empty() {
        return Some("it is empty");
    }
    if beginning.get(TAR..TAR + 5) == Some(b"ustar") {
        return Some("it is a tar archive: unpack it first");
    }
    let mut known = KNOWN.iter();
    let found = known.find(|(bytes, _)| beginning.starts_with(bytes));
    let is_binary = beginning.iter().take(LOOKED_AT).any(|byte| *byte == 0);
    found
        .map(|(_, is)| *is)
        .or(is_binary.then_some("it is binary"))
}

/// Whether it is a zip archive that begins as those of inspect do.
pub(super) fn is_inspect(beginning: &[u8]) -> bool {
    // The name of the first member stands behind thirty bytes of numbers.
    let name = beginning.get(30..).unwrap_or_default();
    beginning.starts_with(b"PK\x03\x04") && INSPECT.iter().any(|known| name.starts_with(known))
}
