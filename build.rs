//! Has the program linked with packed relocations, where the machine that builds it can run such a
//! program: it is nearly a megabyte smaller then.
//!
//! The C library takes them since glibc 2.36; with an older one such a program does not even start. So one is
//! built and run here, with the linker and the flags of the build; if that fails in any way, nothing
//! changes. Whoever builds for machines with an older one sets `UNDERTEXT_PACKED=0`.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells it what to build by the environment, and hears of it there"
)]

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What the linker is told.
const PACKED: &str = "-Wl,-z,pack-relative-relocs";

/// Set to 0, it leaves relocations as every C library takes them.
const ASKED: &str = "UNDERTEXT_PACKED";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rerun-if-env-changed={ASKED}");
    // Only the program is linked so, and only as a program for this machine.
    let is_wanted = env::var(ASKED).as_deref() != Ok("0")
        && env::var_os("CARGO_FEATURE_CLI").is_some()
        && env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
        && env::var_os("HOST") == env::var_os("TARGET");
    if is_wanted && runs_packed().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bins={PACKED}");
    }
}

/// Whether a program that is linked so can be made and runs here; `None` if that cannot be tried.
fn runs_packed() -> Option<bool> {
    let directory = PathBuf::from(env::var_os("OUT_DIR")?);
    let (source, program) = (directory.join("packed.rs"), directory.join("packed"));
    fs::write(
        &source,
        "fn main() { print!(\"{}\", std::env::args().count()) }\n",
    )
    .ok()?;
    let mut build = Command::new(env::var_os("RUSTC")?);
    build.arg("--target").arg(env::var_os("TARGET")?);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut choice = std::ffi::OsString::from("linker=");
        choice.push(linker);
        build.arg("-C").arg(choice);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    build.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    build.args(["-C", &format!("link-arg={PACKED}"), "-o"]);
    let status = build
        .arg(&program)
        .arg(&source)
        .stderr(Stdio::null())
        .status();
    if !status.ok()?.success() {
        return Some(false);
    }
    let output = Command::new(&program).stderr(Stdio::null()).output().ok()?;
    Some(output.status.success() && output.stdout == b"1")
}
