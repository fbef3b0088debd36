//! What may be reached, worked out from what the user said.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::sandbox::Mechanism;
#[cfg(target_os = "linux")]
use crate::sandbox::paths::follow;
use crate::sandbox::{os_path, os_paths};
use crate::setup::{Allowance, Network, Sandbox};

/// Directories of the system that every program needs, and a few files of them.
const SYSTEM: [&str; 23] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/sys",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/pacman",
    "/var/lib/apt",
    "/var/lib/nix",
    "/var/lib/alternatives",
    "/var/cache/fontconfig",
    "/run/current-system",
    "/run/opengl-driver",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
];

/// What lies in them and is nobody's business.
const SECRET: [&str; 19] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/security/opasswd",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/etc/docker/key.json",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/rancher",
    "/etc/mysql/debian.cnf",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
];

/// Directories and files below home where toolchains and their settings usually are, and which
/// `sandbox.read` names unless it is set.
pub const KNOWN_DIRECTORIES: [&str; 38] = [
    "~/.cargo",
    "~/.rustup",
    "~/.pyenv",
    "~/.rbenv",
    "~/.rvm",
    "~/.nvm",
    "~/.fnm",
    "~/.volta",
    "~/.bun",
    "~/.deno",
    "~/.asdf",
    "~/.sdkman",
    "~/.jenv",
    "~/.dotnet",
    "~/.ghcup",
    "~/.cabal",
    "~/.stack",
    "~/.opam",
    "~/.elan",
    "~/.juliaup",
    "~/.julia",
    "~/.m2/repository",
    "~/.gradle/wrapper",
    "~/.nix-profile",
    "~/go",
    "~/miniconda3",
    "~/anaconda3",
    "~/.local/bin",
    "~/.local/lib",
    "~/.local/pipx",
    "~/.local/share/uv",
    "~/.local/share/mise",
    "~/.local/share/fnm",
    "~/.local/share/pnpm",
    "~/.local/share/pipx",
    "~/.gitconfig",
    "~/.config/git/config",
    "~/.config/git/ignore",
];

/// What lies in those and holds a secret.
const SECRET_AT_HOME: [&str; 9] = [
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".cabal/config",
    ".stack/upload",
    ".config/git/credentials",
    ".opam/plugins/opam-publish",
    ".julia/servers",
    ".local/share/uv/credentials",
    ".dotnet/corefx/cryptography/x509stores",
];

/// What a process may reach, and where it may work for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// What may be read and run, with all below.
    #[serde(with = "os_paths")]
    pub(crate) read: Vec<PathBuf>,
    /// What may be written, with all below; the workspace first.
    #[serde(with = "os_paths")]
    pub(crate) write: Vec<PathBuf>,
    /// The workspace where it may only be read.
    #[serde(with = "os_paths")]
    pub(crate) roots: Vec<PathBuf>,
    /// What may not be reached, though it lies in what may.
    #[serde(with = "os_paths")]
    pub(crate) hidden: Vec<PathBuf>,
    /// What may be read, though it lies in what is hidden.
    #[serde(with = "os_paths", default)]
    pub(crate) spared: Vec<PathBuf>,
    /// What was named to be written and is led elsewhere by a link in the workspace.
    #[serde(with = "os_paths", default)]
    pub(crate) led_away: Vec<PathBuf>,
    /// What may be read and seem to be written, in a layer of its own that does not last.
    #[serde(with = "os_paths", default)]
    pub(crate) layered: Vec<PathBuf>,
    /// Below these nothing is protected: the user named them.
    #[serde(with = "os_paths")]
    pub(crate) unprotected: Vec<PathBuf>,
    /// Whether the network is the user's.
    pub(crate) open: bool,
    /// The hosts that may be reached where it is not.
    pub(crate) hosts: Vec<String>,
    /// Whether somebody is asked about hosts that are not among them.
    #[serde(default)]
    pub(crate) asks: bool,
    /// The home directory, if it is known.
    #[serde(with = "os_path")]
    pub(crate) home: Option<PathBuf>,
    /// A directory of its own; `None` until the process begins.
    #[serde(with = "os_path")]
    pub(crate) own: Option<PathBuf>,
    /// The ways that may be gone; none: all.
    pub(crate) ways: Vec<Way>,
    /// What may be taken of the machine.
    pub(crate) limits: Allowance,
}

/// A way to enforce bounds. Tests take some away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By namespaces.
    Namespaces,
    /// By a Landlock of at most this version.
    Landlock(u8),
}

/// The surroundings of the user.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// The home directory, if it is known.
    pub directory: Option<PathBuf>,
    /// The directories in which the user's programs are found.
    pub programs: Vec<PathBuf>,
    /// What is the program's own: transcripts, settings, logs.
    pub ours: Vec<PathBuf>,
}

impl Bounds {
    /// The bounds that a sandbox means in a workspace with these roots; `None` if it is off.
    pub fn of(sandbox: &Sandbox, roots: &[PathBuf], around: &Home) -> Option<Self> {
        let allowed = sandbox.reach()?;
        let home = around.directory.as_deref();
        let named = |paths: &[String]| -> Vec<PathBuf> {
            let paths = paths.iter().filter_map(|path| full(path, roots, home));
            paths.collect()
        };
        let written = named(&allowed.write);
        // What a link leads to is what is written, unless tools may have laid it.
        let (mut granted, mut led_away) = (Vec::new(), Vec::new());
        for path in &written {
            match led_to(path, roots) {
                Some(real) => granted.push(real),
                None => led_away.push(path.clone()),
            }
        }
        let (write, kept) = match sandbox {
            Sandbox::Off => return None,
            Sandbox::Workspace(_) => (roots.iter().chain(&granted).cloned().collect(), Vec::new()),
            Sandbox::ReadOnly(_) => (Vec::new(), roots.to_vec()),
        };
        let links = written.iter().filter(|path| !granted.contains(path));
        let links: Vec<PathBuf> = links.cloned().collect();
        let mut layered = named(&KNOWN_DIRECTORIES.map(str::to_owned));
        let allowed_to_read = named(&allowed.read);
        layered.retain(|path| allowed_to_read.contains(path));
        // Programs of the workspace are part of it, and those of toolchains of theirs.
        let elsewhere = |path: &&PathBuf| {
            let holds_home = home.is_some_and(|home| home.starts_with(path));
            let mut known = roots.iter().chain(&granted).chain(&layered);
            !holds_home && path.parent().is_some() && !known.any(|known| path.starts_with(known))
        };
        let (open, hosts) = match &allowed.network {
            Network::None => (false, Vec::new()),
            Network::Hosts(hosts) => (false, hosts.clone()),
            Network::Open => (true, Vec::new()),
        };
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        // Where names are looked up is often told by a link to elsewhere.
        read.extend(
            open.then(|| PathBuf::from("/etc/resolv.conf").canonicalize().ok())
                .flatten(),
        );
        read.extend(around.programs.iter().filter(elsewhere).cloned());
        read.extend(allowed_to_read.iter().cloned());
        read.extend(links.iter().cloned());
        let mut hidden: Vec<PathBuf> = SECRET.iter().map(PathBuf::from).collect();
        hidden.extend(host_keys());
        hidden.extend(
            home.into_iter()
                .flat_map(|home| SECRET_AT_HOME.map(|path| home.join(path))),
        );
        hidden.extend(around.ours.iter().cloned());
        hidden.retain(|path| !granted.contains(path) && !allowed_to_read.contains(path));
        Some(Self {
            read,
            write,
            roots: kept,
            hidden,
            spared: Vec::new(),
            led_away,
            layered,
            unprotected: granted.into_iter().chain(links).collect(),
            open,
            hosts,
            asks: false,
            home: home.map(Path::to_owned),
            own: None,
            ways: Vec::new(),
            limits: allowed.limits,
        })
    }

    /// The same bounds, within which this may be read as well, and of what is hidden around it nothing
    /// else.
    #[must_use]
    pub fn reading(mut self, path: PathBuf) -> Self {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            self.spared.push(path.clone());
        }
        self.read.push(path);
        self
    }

    /// The same bounds, within which these may be read as well, unless they are hidden.
    #[must_use]
    pub fn seeing(mut self, paths: Vec<PathBuf>) -> Self {
        self.read.extend(paths);
        self
    }

    /// Whether tools may write here.
    pub fn writes(&self, path: &Path) -> bool {
        self.write.iter().any(|root| path.starts_with(root))
    }

    /// What the user named to be written and lies outside the workspace.
    pub fn written_outside(&self) -> Vec<&Path> {
        let named = |path: &&PathBuf| self.unprotected.contains(path);
        let lies_in_work = |path: &PathBuf| {
            let mut roots = self.write.iter().filter(|path| !named(path));
            roots.any(|root| path.starts_with(root))
        };
        let outside = self.write.iter().filter(named);
        let outside = outside.filter(|path| !lies_in_work(path));
        outside.map(PathBuf::as_path).collect()
    }

    /// What of the home directory, of keys and of what is the program's own may be read because the user
    /// named it; toolchains do not count, as nobody has to name them.
    pub(crate) fn read_at_home(&self) -> Vec<&Path> {
        let is_known = |path: &PathBuf| self.layered.contains(path) || self.spared.contains(path);
        let read = self.read.iter().filter(|path| !is_known(path));
        let all = read.map(PathBuf::as_path).chain(self.written_outside());
        let home = self.home.as_deref();
        let is_private = |path: &&Path| {
            SECRET.iter().any(|secret| path.starts_with(secret))
                || home.is_some_and(|home| path.starts_with(home) || home.starts_with(path))
        };
        let mut at_home: Vec<&Path> = all.filter(is_private).collect();
        at_home.dedup();
        at_home
    }

    /// What was named to be written and is not there. Outside the workspace it would be made in a
    /// directory that does not last.
    pub fn missing(&self, roots: &[PathBuf]) -> Option<&Path> {
        let elsewhere =
            |path: &&PathBuf| !path.exists() && !roots.iter().any(|root| path.starts_with(root));
        self.unprotected
            .iter()
            .find(elsewhere)
            .map(PathBuf::as_path)
    }

    /// The same bounds, enforced in these ways alone: how a test forces what another system has.
    #[doc(hidden)]
    #[must_use]
    pub fn by(mut self, ways: Vec<Way>) -> Self {
        self.ways = ways;
        self
    }

    /// The same bounds, about which somebody is asked.
    #[cfg(target_os = "linux")]
    pub(crate) fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// The same bounds for one call, which may reach this directory as well, but no network.
    #[cfg(target_os = "linux")]
    pub(crate) fn lending(mut self, directory: PathBuf, writes: bool) -> Self {
        let lent = if writes {
            &mut self.write
        } else {
            &mut self.read
        };
        lent.push(directory.clone());
        self.unprotected.push(directory);
        (self.open, self.asks) = (false, false);
        self.hosts.clear();
        self
    }

    /// Whether a path lies in what may not be reached wherever it is.
    #[cfg(target_os = "linux")]
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| {
            let real = hidden.canonicalize();
            path.starts_with(hidden) || real.is_ok_and(|real| path.starts_with(real))
        })
    }

    /// Whether a path lies in what may be read.
    #[cfg(target_os = "linux")]
    pub(crate) fn shows(&self, path: &Path) -> bool {
        let mut shown = self.read.iter().chain(&self.write).chain(&self.roots);
        shown.any(|shown| path.starts_with(shown))
    }

    /// Whether there is a proxy for hosts, which needs a network of its own.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_proxy(&self, mechanism: Mechanism) -> bool {
        let asks = self.asks && mechanism == Mechanism::Namespaces;
        !self.open && (asks || !self.hosts.is_empty())
    }

    /// What may be written, without what lies in other of it: nobody inside can replace these, or
    /// a directory on the way to them.
    #[cfg(target_os = "linux")]
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        let lies_in = |path: &PathBuf, above: &PathBuf| {
            path != above && above.parent().is_some() && path.starts_with(above)
        };
        let mut written: Vec<PathBuf> = Vec::new();
        for path in &self.write {
            let is_redundant = self.write.iter().any(|above| lies_in(path, above));
            if !is_redundant && !written.contains(path) {
                written.push(path.clone());
            }
        }
        written
    }

    /// Where tools, now or in an earlier run, may have laid links.
    #[cfg(target_os = "linux")]
    pub(crate) fn distrusted(&self) -> Vec<PathBuf> {
        let all = self.write.iter().chain(&self.roots);
        let all = all.filter(|path| path.parent().is_some());
        all.cloned().collect()
    }

    /// Where a directory of the process's own may be: the one that is wanted, or another, but not
    /// in what tools may write.
    #[cfg(target_os = "linux")]
    pub(crate) fn apart(&self, wanted: &Path) -> PathBuf {
        let distrusted = self.distrusted();
        let is_apart = |path: &&Path| {
            // What is wanted and not there is told of where it is needed.
            let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
            !distrusted.iter().any(|above| real.starts_with(above))
        };
        let others = ["/tmp", "/var/tmp", "/dev/shm"].map(Path::new);
        let others = others.into_iter().filter(|path| path.is_dir());
        let mut places = std::iter::once(wanted).chain(others);
        places.find(is_apart).unwrap_or(wanted).to_owned()
    }

    /// The temporary directory that tools are told of where they have a file system of their own.
    #[cfg(target_os = "linux")]
    pub(crate) fn temporary(&self) -> PathBuf {
        let [usual, other] = ["/tmp", "/var/tmp"].map(PathBuf::from);
        let only_read = self.read.contains(&usual) && !self.write.contains(&usual);
        if only_read { other } else { usual }
    }

    /// Whether namespaces may be tried.
    pub(crate) fn tries_namespaces(&self) -> bool {
        self.ways.is_empty() || self.ways.contains(&Way::Namespaces)
    }

    /// The newest version of Landlock that is used.
    #[cfg(target_os = "linux")]
    pub(crate) fn newest_landlock(&self) -> u8 {
        const NEWEST: u8 = 7;
        if self.ways.is_empty() {
            return NEWEST;
        }
        let versions = self.ways.iter().map(|way| match way {
            Way::Namespaces => 0,
            Way::Landlock(version) => *version,
        });
        versions.max().unwrap_or(0).min(NEWEST)
    }

    /// A directory for what is not to last, below the one of its own.
    pub(crate) fn own(&self, name: &str) -> Option<PathBuf> {
        self.own.as_ref().map(|own| own.join(name))
    }
}

/// Where a path leads that was named to be written; `None` if a link in the workspace leads it out of
/// there.
#[cfg(target_os = "linux")]
fn led_to(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    if let Ok(led) = follow(path, roots) {
        return Some(led.real);
    }
    let led = follow(path, &[]).ok()?;
    let mut roots = roots.iter();
    roots
        .any(|root| led.real.starts_with(root))
        .then_some(led.real)
}

#[cfg(not(target_os = "linux"))]
fn led_to(path: &Path, _: &[PathBuf]) -> Option<PathBuf> {
    Some(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// The path that is meant: `~` is the home directory, and what is relative counts from the workspace.
fn full(path: &str, roots: &[PathBuf], home: Option<&Path>) -> Option<PathBuf> {
    let full = match (path.strip_prefix('~'), home) {
        (Some(""), home) => home?.to_owned(),
        (Some(rest), home) if rest.starts_with('/') => home?.join(rest.trim_start_matches('/')),
        _ => roots.first()?.join(path),
    };
    let mut plain = PathBuf::new();
    for part in full.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    Some(plain)
}

/// The keys by which this machine is known.
fn host_keys() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/etc/ssh")
        .into_iter()
        .flatten()
        .flatten();
    let is_key = |name: &str| name.starts_with("ssh_host_") && name.ends_with("_key");
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_key))
        .map(|entry| entry.path())
        .collect()
}
