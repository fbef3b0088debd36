//! What tools may take of the machine: too much is ended, said, and the next call works.

use std::ffi::CStr;
use std::fs;

use rustix::mount::{MountFlags, MountPropagationFlags};
use serde_json::json;
use undertext::exchange::Status;
use undertext::hands::Hands;
use undertext::setup::{Allowance, Reach, Sandbox};

use super::{Area, By, bash, had, number, order, ways};

const MEMORY: &str = "[processes took more than 200 MiB of memory together, which is the limit \
                      (sandbox); the largest was ended; the user allows more with \
                      sandbox.limits.memory in config.yaml]";

const LARGE: &str = "[no file may grow beyond 1 MiB, which is the limit (sandbox); the user allows more \
                     with sandbox.limits.file_size in config.yaml]";

const OPEN: &str = "[no process may have more than 64 files open, which is the limit (sandbox); the user \
                    allows more with sandbox.limits.open_files in config.yaml]";

pub(super) const PROCESSES: &str = "[more than 100 processes and threads ran at once, which is the limit \
                         (sandbox); all of them were ended; the user allows more with \
                         sandbox.limits.processes in config.yaml]";

/// Hands that may take little.
pub(super) async fn frugal(area: &Area, by: By) -> Option<Hands> {
    let limits = Allowance {
        memory: Some(200 << 20),
        processes: 100,
        open_files: 64,
        file_size: 1 << 20,
        ..Allowance::default()
    };
    allowed(area, by, limits).await
}

/// Hands that may take this.
async fn allowed(area: &Area, by: By, limits: Allowance) -> Option<Hands> {
    let reach = Reach {
        limits,
        ..area.reach()
    };
    let bounds = area.bounds(&Sandbox::Workspace(reach)).by(ways(by));
    had(by, area.start(bounds).await).map(|(hands, _)| hands)
}

#[tokio::test]
async fn too_much_is_ended_and_the_next_call_works() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let Some(hands) = frugal(&area, by).await else {
            continue;
        };
        for (command, end) in [
            // What has no line end is kept until there is one, however long that takes to be seen.
            (
                "{ head -c 600000000 /dev/zero; while sleep 0.1; do printf x; done; } | tail -n1 | wc -l",
                MEMORY,
            ),
            // A fork bomb, which would stop at some two thousand if nobody else stopped it.
            (
                "b() { sleep 0.02; [ $1 -eq 10 ] || { b $(($1 + 1)) & b $(($1 + 1)) & }; sleep 5; }; b 0; sleep 20",
                PROCESSES,
            ),
            (
                "python3 -c 'f = [open(\"a.txt\") for n in range(90)]' || exit 9",
                &format!("[exit 9]\n{OPEN}"),
            ),
            (
                "head -c 5000000 /dev/zero >big; stat -c %s big; exit 7",
                &format!("1048576\n[exit 7]\n{LARGE}"),
            ),
            ("ulimit -c; kill -SEGV $$", "0\n[ended by signal 11]"),
        ] {
            let outcome = bash(&hands, command).await;
            assert!(
                outcome.content.ends_with(end),
                "{by:?}, {command}: {outcome:?}"
            );
            let next = bash(&hands, "cat a.txt").await;
            assert_eq!(next.content, "hello\n", "{by:?}, after {command}");
        }
        assert!(
            !fs::read_dir(area.path("w"))
                .unwrap()
                .flatten()
                .any(|entry| {
                    entry
                        .file_name()
                        .to_str()
                        .is_some_and(|name| name.starts_with("core"))
                })
        );
        // A file tool is held to the same, and the process outlives it.
        let text = "x".repeat(2 << 20);
        let write = order("Write", &json!({"path": "large", "content": text}));
        let outcome = hands.run(write).await;
        assert_eq!(outcome.status, Status::Error, "{by:?}: {outcome:?}");
        assert!(outcome.content.ends_with(LARGE), "{by:?}: {outcome:?}");
        assert_eq!(bash(&hands, "cat a.txt").await.content, "hello\n");
        assert_eq!(hands.remarks(), [""; 0]);
        hands.close().await;
    }
}

/// Those that ended and that nobody waits for count as well.
#[tokio::test]
async fn zombies_without_end_are_ended() {
    let zombies = number("UNDERTEXT_ZOMBIES", 300);
    let processes = zombies / 10 * 8;
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let limits = Allowance {
            processes,
            ..Allowance::default()
        };
        let Some(hands) = allowed(&area, by, limits).await else {
            continue;
        };
        let command = format!(
            "python3 -c 'import os, time\nfor i in range({zombies}): os.fork() or os._exit(0)\ntime.sleep(60)'"
        );
        let outcome = bash(&hands, &command).await;
        let end = PROCESSES.replace("100", &undertext::words::grouped(processes));
        assert!(outcome.content.ends_with(&end), "{by:?}: {outcome:?}");
        assert_eq!(bash(&hands, "cat a.txt").await.content, "hello\n");
        assert_eq!(hands.remarks(), [""; 0]);
        hands.close().await;
    }
}

/// A disk is not filled to its end: whoever fills it is ended, and what is not needed can be removed.
#[test]
fn a_disk_is_not_filled() {
    on_disk(c"size=64m", fill);
}

/// A disk that holds so many files and no more is not filled with those either.
#[test]
fn a_disk_is_not_filled_with_names() {
    on_disk(c"nr_inodes=3000", make_many);
}

/// Tries this on a disk of its own.
fn on_disk(options: &'static CStr, attempt: impl AsyncFn(&Area, By) + Send + 'static) {
    // A thread of its own has mounts of its own.
    let filled = std::thread::spawn(move || {
        let area = Area::new();
        let apart = nix::sched::CloneFlags::CLONE_NEWNS | nix::sched::CloneFlags::CLONE_FS;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        let mounted = nix::sched::unshare(apart)
            .map_err(std::io::Error::from)
            .and_then(|()| Ok(rustix::mount::mount_change("/", private)?))
            .and_then(|()| {
                Ok(rustix::mount::mount(
                    "disk",
                    area.path("w"),
                    "tmpfs",
                    MountFlags::empty(),
                    options,
                )?)
            });
        if let Err(error) = mounted {
            println!("skipped: no disk of one's own can be had: {error}");
            return;
        }
        fs::write(area.path("w/a.txt"), "hello\n").unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            for by in [By::Namespaces, By::Landlock] {
                attempt(&area, by).await;
            }
        });
    });
    filled.join().unwrap();
}

/// Fills the disk of 64 MiB on which this workspace lies, of which 8 are to stay free.
async fn fill(area: &Area, by: By) {
    let limits = Allowance {
        free_disk: 8 << 20,
        ..Allowance::default()
    };
    let Some(hands) = allowed(area, by, limits).await else {
        return;
    };
    // By many files, each of them small.
    let command = "for n in $(seq 58); do head -c 1048576 /dev/zero >$n; done; sleep 20";
    let outcome = bash(&hands, command).await;
    let end = "MiB were left on the disk of ";
    assert!(outcome.content.contains(end), "{by:?}: {outcome:?}");
    let end = "sandbox.limits.free_disk in config.yaml]";
    assert!(outcome.content.ends_with(end), "{by:?}: {outcome:?}");
    // It is still that full.
    let next = bash(&hands, "sleep 0.3; cat a.txt; rm ?; ls | wc -l").await;
    assert!(next.content.starts_with("hello\n"), "{by:?}: {next:?}");
    let outcome = bash(&hands, "head -c 58000000 /dev/zero >all; sleep 20").await;
    assert!(outcome.content.ends_with(end), "{by:?}: {outcome:?}");
    assert_eq!(
        bash(&hands, "rm all ??; sleep 0.3; ls").await.content,
        "a.txt\n"
    );
    hands.close().await;
}

/// Makes most of the 3,000 files that can be made here.
async fn make_many(area: &Area, by: By) {
    let Some(hands) = allowed(area, by, Allowance::default()).await else {
        return;
    };
    let outcome = bash(&hands, "seq 2500 | xargs touch; sleep 20").await;
    let end = "files could still be made on the disk of ";
    assert!(outcome.content.contains(end), "{by:?}: {outcome:?}");
    let end = "the user lifts that with sandbox.limits.free_disk: 0 in config.yaml]";
    assert!(outcome.content.ends_with(end), "{by:?}: {outcome:?}");
    let next = bash(&hands, "cat a.txt; find . -name '[0-9]*' -delete; ls").await;
    assert_eq!(next.content, "hello\na.txt\n", "{by:?}");
    hands.close().await;
}

/// What is reserved and not used is no memory: interpreters and sanitizers reserve a lot.
#[tokio::test]
async fn what_is_only_reserved_does_not_count() {
    let area = Area::new();
    let Some(hands) = frugal(&area, By::Namespaces).await else {
        return;
    };
    let command = "python3 -c 'import mmap, time\nm = mmap.mmap(-1, 16 << 30, mmap.MAP_PRIVATE | \
                   mmap.MAP_ANONYMOUS | 0x4000)\nm[0] = 1\ntime.sleep(0.3)\nprint(len(m) >> 30)'";
    assert_eq!(bash(&hands, command).await.content, "16\n");
    // Nor does what many share count more than once.
    let command = "python3 -c 'import os, time\nb = b\"x\" * (120 << 20)\n\
                   for i in range(6):\n if os.fork() == 0:\n  time.sleep(0.5); os._exit(0)\n\
                   for i in range(6): os.wait()\nprint(\"done\")'";
    assert_eq!(bash(&hands, command).await.content, "done\n");
    hands.close().await;
}

/// What nobody has mapped is no process's memory: where it can be limited, that is half of it.
#[tokio::test]
async fn memory_to_share_is_limited() {
    let area = Area::new();
    let limits = Allowance {
        memory: Some(200 << 20),
        ..Allowance::default()
    };
    let Some(hands) = allowed(&area, By::Namespaces, limits).await else {
        return;
    };
    let fill = "head -c 150000000 /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x; rm /dev/shm/x";
    let outcome = bash(&hands, fill).await;
    assert!(outcome.content.contains("No space left"), "{outcome:?}");
    assert!(outcome.content.contains("\n104857600\n"), "{outcome:?}");
    let fill = "python3 -c 'for n in range(70_000): open(f\"/dev/shm/{n}\", \"w\").close()'";
    let outcome = bash(
        &hands,
        &format!("{fill}; find /dev/shm -mindepth 1 -delete; ls /dev/shm | wc -l"),
    )
    .await;
    assert!(outcome.content.contains("No space left"), "{outcome:?}");
    assert!(outcome.content.contains("\n0\n"), "{outcome:?}");
    // Other users may limit their own on some systems only.
    if rustix::process::geteuid().is_root() {
        let of = |mib: u32| {
            let get = format!("c.shmget(0, {mib} << 20, 0o1600)");
            format!("python3 -c 'import ctypes; c = ctypes.CDLL(None); print({get} < 0)'")
        };
        let both = [of(50), of(150)].join("; ");
        assert_eq!(bash(&hands, &both).await.content, "False\nTrue\n");
    }
    hands.close().await;
}

/// The most memory that this process has had, in KiB.
fn peak(hands: &str) -> u64 {
    let line = hands
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// However much is printed, in one line or many, it takes little memory.
#[tokio::test]
async fn a_flood_takes_little_memory() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let mib = number("UNDERTEXT_FLOOD_MIB", 24);
    let bytes = mib << 20;
    let status = "cat /proc/1/status";
    let before = peak(&bash(&hands, status).await.content);
    for command in [
        format!("head -c {bytes} /dev/zero | tr '\\0' x"),
        format!("head -c {bytes} /dev/zero | tr '\\0' x >&2"),
        format!("yes 'out of one, err of the other' | head -c {bytes} | tee /dev/stderr"),
        // What is no text is written out longer.
        format!("head -c {bytes} /dev/zero"),
        format!("head -c {bytes} /dev/zero | tr '\\0' '\\377'"),
    ] {
        let outcome = bash(&hands, &command).await;
        assert_eq!(outcome.status, Status::Ok, "{command}");
        assert!(outcome.bytes >= bytes, "{command}");
        let more = peak(&bash(&hands, status).await.content) - before;
        println!("{mib} MiB of {command}: {more} KiB more memory");
        assert!(more <= 16 << 10, "{command}: {more} KiB more");
    }
    hands.close().await;
}

/// A variable that is not set, a home directory that was not meant: only the workspace can be lost.
#[tokio::test]
async fn a_mistaken_removal_loses_the_workspace_at_most() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let Some(hands) = frugal(&area, by).await else {
            continue;
        };
        let (outside, home) = (area.path("outside"), area.path("home"));
        let command = format!(
            "rm -rf \"$NOT_SET\"{} {}/* {}/.[!.]* ~ ./* ; true",
            outside.display(),
            home.display(),
            home.display()
        );
        assert_eq!(bash(&hands, &command).await.status, Status::Ok);
        hands.close().await;
        for kept in [
            "outside/a.txt",
            "home/.ssh/id",
            "home/tools/tool",
            "ours/run.jsonl",
        ] {
            assert!(area.path(kept).exists(), "{by:?}: {kept}");
        }
        assert!(!area.path("w/a.txt").exists(), "{by:?}");
    }
}
