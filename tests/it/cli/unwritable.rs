//! Places that can be read and not written, from the start on or all at once in the middle of a run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

/// Lays a place over itself that cannot be written.
fn lay(path: &Path) -> std::io::Result<()> {
    rustix::mount::mount_bind(path, path)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    Ok(rustix::mount::mount_remount(path, flags, "")?)
}

/// Takes away what was laid over it.
fn lift(path: &Path) {
    rustix::mount::unmount(path, UnmountFlags::DETACH).unwrap();
}

/// Does this in a thread that has mounts of its own, and whose programs have them as well.
fn apart(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        let flags = nix::sched::CloneFlags::CLONE_NEWNS | nix::sched::CloneFlags::CLONE_FS;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        let apart = nix::sched::unshare(flags)
            .map_err(std::io::Error::from)
            .and_then(|()| Ok(rustix::mount::mount_change("/", private)?));
        match apart {
            Ok(()) => work(),
            Err(error) => println!("skipped: no mounts of one's own can be had: {error}"),
        }
    });
    thread.join().unwrap();
}

const TRANSCRIPTS: &str = "home/.local/state/undertext/transcripts";

#[test]
fn a_run_that_cannot_be_written_does_not_begin_and_can_still_be_looked_at() {
    apart(|| {
        let place = Place::new();
        let provider = Provider::new([says("Done."), says("Again.")]);
        let server = ["run", "-q", "-m", "m", "--base-url", &provider.url];
        assert_eq!(place.run(&[&server[..], &["task"]].concat()).code, 0);
        provider.body();
        let path = place.transcripts().remove(0);
        let before = fs::read(&path).unwrap();
        let on = [&server[..], &["--continue", "go on"]].concat();
        let mut said = String::new();
        // The directory, then the file alone; each time the run is read as before.
        for (what, lines) in [
            (
                place.path(TRANSCRIPTS),
                &[&[&server[..], &["task"]].concat(), &on][..],
            ),
            (path.clone(), &[&on]),
        ] {
            lay(&what).unwrap();
            for line in lines {
                let ran = place.run(line);
                assert_eq!(ran.out, "", "{line:?}");
                write!(said, "{} {}", ran.code, place.plain(&ran.err)).unwrap();
            }
            // A copy elsewhere, as is advised.
            let fork = ["fork", path.to_str().unwrap(), "--transcripts", "copies"];
            for line in [&["show"][..], &["print"], &["replay", "--verify"], &fork] {
                let ran = place.run(line);
                assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
            }
            lift(&what);
        }
        assert_eq!(provider.asked(), 0);
        assert_eq!(fs::read(&path).unwrap(), before);
        insta::assert_snapshot!(said, @"
        6 undertext: cannot create /home/.local/state/undertext/transcripts/UUID.jsonl: Read-only file system (os error 30); name another directory with --transcripts
        6 undertext: cannot open /home/.local/state/undertext/transcripts/UUID.jsonl: Read-only file system (os error 30); `undertext fork PATH --transcripts DIR` makes a copy that can be gone on with
        6 undertext: cannot open /home/.local/state/undertext/transcripts/UUID.jsonl: Read-only file system (os error 30); `undertext fork PATH --transcripts DIR` makes a copy that can be gone on with
        ");
        let ran = place.run(&on);
        assert_eq!((ran.code, ran.out.as_str()), (0, "Again.\n"), "{ran:?}");
    });
}

#[test]
fn a_run_whose_place_can_no_longer_be_written_says_so_and_goes_on_later() {
    apart(|| {
        let place = Place::new();
        // While the first of its calls waits, the place is changed; the second has more to keep.
        let calls = Answer::Calls(vec![
            (
                "Bash",
                r#"{"command":"touch begun; until [ -e go ]; do sleep 0.01; done"}"#,
            ),
            ("Bash", r#"{"command":"seq 30000; echo ran >> ran"}"#),
        ]);
        let provider = Provider::new([calls, says("Done.")]);
        let server = ["run", "-q", "-m", "m", "--base-url", &provider.url];
        let line = [&server[..], &["task"]].concat();
        let mut child = place.command(&line).spawn().unwrap();
        while !place.path("home/w/begun").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it works");
            std::thread::yield_now();
        }
        let dir = place.path(TRANSCRIPTS);
        // Whoever is at work sees mounts that are made now: it lives among the same.
        lay(&dir).unwrap();
        fs::write(place.path("home/w/go"), "").unwrap();
        let ran = crate::cli::ended(child);
        assert_eq!((ran.code, ran.out.as_str()), (6, ""), "{ran:?}");
        insta::assert_snapshot!(place.plain(&ran.err), @"undertext: cannot record the run: cannot keep a blob of /home/.local/state/undertext/transcripts/UUID.jsonl: Read-only file system (os error 30); make its place writable again, then try again");
        let path = place.transcripts().remove(0);
        let before = fs::read(&path).unwrap();
        lift(&dir);
        let on = [&server[..], &["--resume", path.to_str().unwrap()]].concat();
        let ran = place.run(&on);
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{ran:?}");
        assert!(fs::read(&path).unwrap().starts_with(&before));
        assert_eq!(
            fs::read_to_string(place.path("home/w/ran")).unwrap(),
            "ran\n"
        );
        assert_eq!(place.run(&["replay", "--verify"]).code, 0);
    });
}
