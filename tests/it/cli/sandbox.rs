//! What a run says of its sandbox.

use super::*;

/// A run whose sandbox cannot be enforced does not begin; one that has none on purpose says so.
#[cfg(target_os = "linux")]
#[test]
fn a_sandbox_that_cannot_be_enforced_is_refused() {
    let place = Place::new();
    let line = [
        "run",
        "-m",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "task",
    ];
    let mut command = place.command(&line);
    command.env_remove("UNDERTEXT_SANDBOX__MODE");
    let ran = ended(command.env("TMPDIR", "/nowhere").spawn().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (5, ""));
    insta::assert_snapshot!(place.plain(&ran.err), @"undertext: the sandbox cannot be enforced: no directory can be made below /nowhere: No such file or directory (os error 2); --sandbox off runs tools with your own rights");
    assert!(place.transcripts().is_empty());
    let ran = place.run(&["run", "--sandbox", "strict", "task"]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.err, @r"
    undertext: invalid value 'strict' for '--sandbox <workspace|read-only|off>': `strict` is no sandbox; there is workspace, read-only or off

    For more information, try '--help'.
    ");
}
