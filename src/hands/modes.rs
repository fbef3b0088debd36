//! What a program says that could not give a file a mode.
//!
//! In the workspace the sandbox refuses but two bits of them: setuid and setgid.

use crate::hands::unreached::says;

/// How programs say that they cannot give a file a mode.
const MODES: [&str; 10] = [
    "changing permissions of",
    "change permissions of",
    "preserving permissions for",
    "setting permissions for",
    "set permissions of",
    "set permissions on",
    "cannot change mode to",
    // Busybox, Go and Node name the call.
    "chmod",
    "fchmod",
    // Git gives what it has made the mode of a shared repository.
    "unable to create temporary file",
];

/// How git says so, which does not say why.
const SHARED: [&str; 3] = [
    "writable by group",
    "unable to set permission to",
    "cannot fix permission bits on",
];

/// How it says so of a directory that it has just made, with an error that was another's.
const SHARED_DIRECTORY: (&str, &str) = (
    "unable to create directory for",
    "no such file or directory",
);

/// Where a trace of Python's says which call it was, or cannot.
const TRACED: [&str; 7] = [
    "file \"<string>\"",
    "file \"<stdin>\"",
    "chmod(",
    "in copymode",
    "in copystat",
    "in copytree",
    "shutil.error: ",
];

/// What such a trace ends with.
const RAISED: [&str; 2] = ["permissionerror: ", "shutil.error: "];

/// How they say that something is not for them to do.
const FORBIDDEN: &str = "operation not permitted";

/// What is said of it.
const LINE: &str = "[no file can be made setuid or setgid here (modes such as 4755 or g+s; sandbox), since \
                    others could run it with the user's rights; other modes can be set]";

/// The line that helps where a mode is what failed.
pub(super) fn line(content: &str) -> Option<String> {
    let text = content.to_lowercase();
    let raised = format!("{FORBIDDEN}: '");
    let is_raised = |line: &str| says(line, &RAISED) && line.contains(&raised);
    let is_traced = says(&text, &TRACED) && text.lines().any(is_raised);
    (is_traced || text.lines().any(is_refused)).then(|| LINE.to_owned())
}

/// The same where only words that nothing else explains count.
pub(super) fn surely(lines: &[&str]) -> Option<String> {
    let mut refused = lines.iter().map(|line| line.to_lowercase());
    refused
        .any(|line| is_refused(&line))
        .then(|| LINE.to_owned())
}

/// Whether a line, in small letters, says that a mode cannot be given.
fn is_refused(line: &str) -> bool {
    let (directory, missing) = SHARED_DIRECTORY;
    says(line, &MODES) && line.contains(FORBIDDEN)
        || says(line, &SHARED)
        || line.contains(directory) && line.contains(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What programs print whose mode was refused, as they print it.
    #[test]
    fn a_mode_that_is_refused_is_told_from_what_else_is() {
        for content in [
            "chmod: changing permissions of 'x': Operation not permitted",
            "tar: x: Cannot change mode to rwsr-xr-x: Operation not permitted",
            "chmod: x: Operation not permitted",
            "open: chmod x: operation not permitted",
            "Error: EPERM: operation not permitted, chmod 'x'",
            "rsync: [generator] failed to set permissions on \"x\": Operation not permitted (1)",
            "fatal: Could not make /w/.git/refs writable by group",
            "fatal: cannot update the ref 'HEAD': unable to create directory for '.git/logs/HEAD': No such \
             file or directory",
        ] {
            assert_eq!(line(content).as_deref(), Some(LINE), "{content}");
            assert_eq!(
                surely(&["a.txt", content]).as_deref(),
                Some(LINE),
                "{content}"
            );
        }
        let chmod = "    os.chmod(\"x\", 0o4755)\n";
        let setns = "    os.setns(4)\n";
        let unnamed = "  File \"<stdin>\", line 1, in <module>\n";
        let forbidden = "PermissionError: [Errno 1] Operation not permitted";
        let missing = "FileNotFoundError: [Errno 2] No such file or directory";
        for (trace, error, expected) in [
            (chmod, format!("{forbidden}: 'x'"), true),
            (unnamed, format!("{forbidden}: 'x'"), true),
            (unnamed, forbidden.to_owned(), false),
            (setns, forbidden.to_owned(), false),
            (chmod, format!("{missing}: 'x'"), false),
        ] {
            let content = format!("{trace}{error}");
            assert_eq!(line(&content).is_some(), expected, "{content}");
            // A program may have gone on after it.
            let lines: Vec<&str> = content.lines().collect();
            assert_eq!(surely(&lines), None, "{content}");
        }
        let owner = "chown: changing ownership of 'x': Operation not permitted";
        assert_eq!(line(owner), None);
    }
}
