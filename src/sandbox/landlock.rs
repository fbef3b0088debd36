//! Landlock: which files may be opened, and how.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use rustix::fs::FileType;

use crate::sandbox::paths::{self, follow};
use crate::sandbox::{Bounds, Mechanism, Protected, Unenforceable};

/// Devices that everybody may use.
pub(super) const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// The first version that refuses to cut files short: without it, what may not be written can
/// still be emptied.
const ENOUGH: u8 = 3;

/// How deep the hidden parts of a directory are gone round.
const DEPTH: usize = 12;

/// Restricts this thread to the bounds; the version of Landlock that does so, 0 if none does and
/// namespaces do it alone.
pub(super) fn restrict(
    bounds: &Bounds,
    protected: &Protected,
    mechanism: Mechanism,
) -> Result<u8, Unenforceable> {
    let newest = bounds.newest_landlock();
    let abi = ABI::from(i32::from(newest));
    let alone = mechanism == Mechanism::Landlock;
    if newest == 0 {
        return if alone {
            Err(Unenforceable::Landlock(
                "this kernel has neither namespaces nor Landlock for it".to_owned(),
            ))
        } else {
            Ok(0)
        };
    }
    let version = apply(bounds, protected, mechanism, abi).map_err(|error| {
        let error = std::io::Error::other(error.to_string());
        Unenforceable::step("Landlock cannot be had", error)
    })?;
    let version = version.min(newest);
    if alone && version < ENOUGH {
        return Err(Unenforceable::Landlock(match version {
            0 => "no namespaces can be had, and this kernel has no Landlock".to_owned(),
            old => format!(
                "no namespaces can be had, and Landlock {old} of this kernel is too old without \
                 them: {ENOUGH} is needed"
            ),
        }));
    }
    Ok(version)
}

/// Makes the rules and applies them; the version that the kernel has.
fn apply(
    bounds: &Bounds,
    protected: &Protected,
    mechanism: Mechanism,
    abi: ABI,
) -> Result<u8, Box<dyn std::error::Error>> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    if abi >= ABI::V4 && mechanism == Mechanism::Landlock && !bounds.open {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    let mut rules = Rules {
        made: ruleset.create()?,
        distrusted: bounds.distrusted(),
        abi,
    };
    let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
    for device in DEVICES {
        rules.add(Path::new(device), all)?;
    }
    for path in &bounds.written() {
        rules.add(path, all)?;
    }
    match mechanism {
        Mechanism::Namespaces => {
            // What may not be read is not there.
            rules.add(Path::new("/"), read)?;
            for beyond in protected.beyond.iter().filter(|beyond| beyond.writes) {
                rules.add(&beyond.path, all)?;
            }
            let own = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/ptmx"];
            for path in own
                .map(Path::new)
                .into_iter()
                .chain(bounds.home.iter().map(PathBuf::as_path))
            {
                rules.add(path, all)?;
            }
        }
        Mechanism::Landlock => {
            for path in bounds.read.iter().chain(&bounds.roots) {
                rules.add_around(path, &bounds.hidden, read, DEPTH)?;
            }
            for path in &bounds.spared {
                let within = |hidden: &&PathBuf| hidden.starts_with(path);
                let hidden: Vec<PathBuf> = bounds.hidden.iter().filter(within).cloned().collect();
                rules.add_around(path, &hidden, read, DEPTH)?;
            }
            for beyond in &protected.beyond {
                rules.add(&beyond.path, read)?;
                for part in beyond.parts.iter().filter(|_| beyond.writes) {
                    rules.add(part, all)?;
                }
            }
            // What is set in /proc is set for the whole machine.
            rules.add(Path::new("/proc"), read)?;
            // Terminals of one's own would lie among those of the user (`/dev/pts`): whoever may open
            // the one may command and read the other.
            if let Some(own) = bounds.own("tmp") {
                rules.add(&own, all)?;
            }
        }
    }
    let status = rules.made.restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => {
            u8::try_from(effective_abi as i32).unwrap_or(u8::MAX)
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    })
}

/// The rules as they are made.
struct Rules {
    made: RulesetCreated,
    /// Links in here lead nowhere.
    distrusted: Vec<PathBuf>,
    abi: ABI,
}

impl Rules {
    /// Allows this at and below a path. What is not there needs no rule.
    fn add(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let led = follow(path, &self.distrusted).ok();
        let Some(opened) = led.and_then(|led| paths::open(&led.real).ok()) else {
            return Ok(());
        };
        let mode = rustix::fs::fstat(&opened)?.st_mode;
        let access = if FileType::from_raw_mode(mode) == FileType::Directory {
            access
        } else {
            access & AccessFs::from_file(self.abi)
        };
        if !access.is_empty() {
            (&mut self.made).add_rule(PathBeneath::new(opened, access))?;
        }
        Ok(())
    }

    /// The same, but for what is hidden below it: of a directory that holds some, each entry that
    /// does not is allowed by itself.
    fn add_around(
        &mut self,
        path: &Path,
        hidden: &[PathBuf],
        access: BitFlags<AccessFs>,
        depth: usize,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let Ok(led) = follow(path, &self.distrusted) else {
            return Ok(());
        };
        let real = led.real;
        if hidden
            .iter()
            .any(|hidden| path.starts_with(hidden) || real.starts_with(hidden))
        {
            return Ok(());
        }
        let holds = hidden
            .iter()
            .any(|hidden| hidden.starts_with(&real) && hidden.exists());
        if !holds {
            return self.add(&real, access);
        }
        if depth == 0 {
            return Ok(());
        }
        // What cannot be listed cannot be gone round, and gets no rule.
        let entries = std::fs::read_dir(&real).into_iter().flatten();
        for entry in entries.flatten() {
            // A link leads to what has a rule of its own, or has none.
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.add_around(&entry.path(), hidden, access, depth - 1)?;
            }
        }
        Ok(())
    }
}
