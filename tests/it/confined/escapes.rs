//! Attempts to reach what is not a file of the workspace: secrets, processes, the network, the kernel.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};

use undertext::sandbox::{Class, Held};

use super::{Area, By, bash};

/// A process that nobody inside may reach.
struct Victim(Child);

impl Victim {
    #[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
    fn new() -> Self {
        // Of root's processes those that have more rights than tools are out of reach for that alone.
        let bare = "b='setpriv --bounding-set=-all --inh-caps=-all'; $b true && exec $b sleep 600; \
                    exec sleep 600";
        let mut command = Command::new("sh");
        command
            .args(["-c", bare])
            .stderr(Stdio::null())
            .env("VICTIM", "SECRET")
            .stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Memory that others share, as old programs do.
struct Memory(String);

impl Memory {
    #[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
    fn new() -> Self {
        let made = Command::new("ipcmk")
            .args(["-M", "4096", "-p", "600"])
            .output();
        let said = made.map(|made| String::from_utf8_lossy(&made.stdout).into_owned());
        // Where there is none, nothing is tried.
        let id = said
            .ok()
            .and_then(|said| said.split(' ').next_back().map(str::to_owned));
        Self(id.unwrap_or_default().trim().to_owned())
    }
}

impl Drop for Memory {
    #[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
    fn drop(&mut self) {
        Command::new("ipcrm").args(["-m", &self.0]).output().ok();
    }
}

/// Commands that succeed if they get through. Those in Python are skipped where there is none.
const ATTEMPTS: &[(Class, &str)] = &[
    // Whoever may write these has programs run later.
    (
        Class::Write,
        "f=/etc/cron.d/undertext-{victim}; : > $f && rm $f",
    ),
    (
        Class::Write,
        "f=/etc/cron.daily/undertext-{victim}; : > $f && rm $f",
    ),
    (
        Class::Write,
        "f=/var/spool/cron/undertext-{victim}; : > $f && rm $f",
    ),
    (
        Class::Write,
        "f=/var/spool/cron/crontabs/undertext-{victim}; : > $f && rm $f",
    ),
    (
        Class::Write,
        "f=/var/spool/cron/atjobs/undertext-{victim}; : > $f && rm $f",
    ),
    (
        Class::Write,
        "f=/etc/systemd/system/undertext-{victim}; : > $f && rm $f",
    ),
    (Class::Attributes, "chown $(id -u) {out}/a.txt"),
    (Class::Attributes, "chattr +d {out}/a.txt"),
    (
        Class::Attributes,
        "python3 -c 'import os; os.setxattr(\"{out}/a.txt\", \"user.x\", b\"x\")'",
    ),
    (Class::Read, "grep SECRET {home}/.ssh/id"),
    (Class::Read, "grep SECRET ~/.netrc"),
    (Class::Read, "grep SECRET ../home/.ssh/id"),
    (Class::Read, "ln -sfn {home} h && grep SECRET h/.ssh/id"),
    (Class::Read, "grep SECRET /proc/self/root{home}/.ssh/id"),
    (Class::Read, "cd {home}/.ssh && grep SECRET id"),
    (Class::Read, "cp -r {home}/.ssh s && grep SECRET s/id"),
    (Class::Read, "tar cf - {home} | grep -a SECRET"),
    (Class::Read, "grep -r SECRET {ours}"),
    (Class::Read, "grep SECRET {home}/tools/key"),
    (Class::Read, "grep root /etc/shadow"),
    (
        Class::Processes,
        "tr '\\0' '\\n' < /proc/{victim}/environ | grep SECRET",
    ),
    (Class::Processes, "ls -H /proc/{victim}/root"),
    (Class::Processes, "ls /proc/{victim}/cwd/"),
    (Class::Processes, "readlink /proc/{victim}/fd/0"),
    (Class::Processes, "ls -l /proc/{victim}/exe | grep sleep"),
    (Class::Processes, ": < /proc/{victim}/mem"),
    (Class::Processes, "grep . /proc/{victim}/maps"),
    (
        Class::Processes,
        "python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(16, {victim}, 0, 0) != 0)'",
    ),
    (
        Class::Processes,
        "python3 -c 'import ctypes; f = ctypes.CDLL(None).shmat; f.restype = ctypes.c_long; \
         exit(f({memory}, None, 0) == -1)'",
    ),
    (Class::Processes, "ipcrm -m {memory}"),
    // Hands themselves are not to be looked into.
    (
        Class::Processes,
        "python3 -c \"import ctypes; exit(ctypes.CDLL(None).ptrace(0x4206, $PPID, 0, 0) != 0)\"",
    ),
    (Class::Processes, ": < /proc/$PPID/mem"),
    (Class::Processes, "readlink /proc/$PPID/fd/0"),
    (Class::Signals, "kill -0 {victim}"),
    (Class::Signals, "kill -CONT {victim}"),
    (Class::Signals, "kill -WINCH {victim}"),
    (Class::Network, "exec 3<>/dev/tcp/127.0.0.1/{tcp}"),
    // Where clouds tell their machines secrets: a datagram needs a way there and nobody who answers.
    (Class::Network, "exec 3<>/dev/udp/169.254.169.254/80"),
    (
        Class::Network,
        "python3 -c 'import socket; \
         socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect((\"169.254.169.254\", 80))'",
    ),
    (Class::Network, "exec 3<>/dev/tcp/localhost/{tcp}"),
    (
        Class::Network,
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {tcp}))'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.create_connection((\"::ffff:127.0.0.1\", {tcp}))'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0)'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM, 0)'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)'",
    ),
    (
        Class::Sockets,
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{socket}\")'",
    ),
    (
        Class::Sockets,
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{abstract}\")'",
    ),
    // Of a pair, each sends to whatever name it likes.
    (
        Class::Sockets,
        "python3 -c 'import socket; \
         socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b\"x\", \"{datagrams}\")'",
    ),
    (
        Class::Sockets,
        "python3 -c 'import socket; \
         socket.socketpair(type=socket.SOCK_RAW)[0].sendto(b\"x\", \"{datagrams}\")'",
    ),
    (
        Class::Network,
        "python3 -c 'import socket; socket.socketpair(30, socket.SOCK_DGRAM)'",
    ),
    (Class::Priorities, "renice -n 5 -p {victim}"),
    (Class::Priorities, "ionice -c 3 -p {victim}"),
    (Class::Priorities, "taskset -p 1 {victim}"),
    (Class::Priorities, "chrt -i -p 0 {victim}"),
    (Class::Names, "stat {home}/.ssh/id"),
    (
        Class::Names,
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); \
         exit(c.inotify_add_watch(c.inotify_init(), b\"{home}/.ssh\", 0xfff) < 0)'",
    ),
    (Class::Kernel, "unshare --user true"),
    (Class::Kernel, "unshare --map-root-user --mount true"),
    (Class::Kernel, "unshare --mount true"),
    (Class::Kernel, "unshare --pid --fork true"),
    (Class::Kernel, "unshare --net true"),
    (Class::Kernel, "unshare --mount mount -t tmpfs none sub"),
    (Class::Kernel, "unshare --mount mount --bind {out} sub"),
    (Class::Kernel, "chroot / true"),
    (Class::Kernel, "su nobody -s /bin/sh -c true"),
    (Class::Kernel, "setpriv --reuid=65534 --clear-groups true"),
    (
        Class::Kernel,
        "grep -E 'CapBnd:.*[1-9a-f]' /proc/self/status",
    ),
    (Class::Kernel, "grep -E 'NoNewPrivs:.*0' /proc/self/status"),
    (Class::Kernel, "nsenter --target {victim} --net true"),
    (Class::Kernel, "mknod sub/null c 1 3"),
    (Class::Kernel, "chown 65534 a.txt"),
    (
        Class::Kernel,
        "ionice -c 1 true && nice -n -5 true && renice -n -5 -p $$",
    ),
    // A call of the older kind, with numbers of its own: 20 is `getpid` there.
    (
        Class::Kernel,
        "python3 -c 'import ctypes, mmap; m = mmap.mmap(-1, 4096, prot=7); \
         m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])); \
         f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m))); \
         exit(f() <= 0)'",
    ),
    (
        Class::Kernel,
        "test -w /proc/sys/kernel/core_pattern && : >> /proc/sys/kernel/core_pattern",
    ),
];

/// System calls that get past a filter if they fail in any other way than by it.
const CALLS: [(&str, u32, &str); 19] = [
    ("open_tree_attr", 467, "-1,0,0,0,0"),
    ("fsopen", 430, "0,0"),
    ("move_mount", 429, "-1,0,-1,0,0"),
    ("pidfd_getfd", 438, "-1,0,0"),
    ("mount_setattr", 442, "-1,0,0,0,0"),
    ("a call of the x32 set", 0x4000_0000 + 165, "0,0,0,0,0"),
    ("mount", 165, "0,0,0,0,0"),
    ("pivot_root", 155, "0,0"),
    ("setns", 308, "-1,0"),
    ("open_by_handle_at", 304, "-1,0,0"),
    ("keyctl", 250, "0,-3,0,0,0"),
    ("add_key", 248, "0,0,0,0,0"),
    ("bpf", 321, "99,0,0"),
    ("perf_event_open", 298, "0,0,-1,-1,0"),
    ("userfaultfd", 323, "0x7fffffff"),
    ("init_module", 175, "0,0,0"),
    ("kexec_load", 246, "0,0,0,0x7fffffff"),
    ("io_uring_setup", 425, "1,0"),
    ("clone3", 435, "0,0"),
];

/// Which attempts succeed.
async fn through(by: By) -> Option<(Vec<(Class, String)>, Vec<(Class, Held)>)> {
    let area = Area::new();
    let (hands, enforced) = area.hands(by).await?;
    let victim = Victim::new();
    let memory = Memory::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let _named = UnixListener::bind(named(&area)).unwrap();
    let datagrams = area.path("home/.ssh/notify");
    let _datagrams = UnixDatagram::bind(&datagrams).unwrap();
    let name = format!("undertext-{}", victim.0.id());
    let _abstract =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let mut attempts: Vec<(Class, String)> = ATTEMPTS
        .iter()
        .map(|(class, text)| (*class, (*text).to_owned()))
        .collect();
    if cfg!(target_arch = "x86_64") {
        attempts.extend(CALLS.iter().map(|(name, number, arguments)| {
            let call = format!(
                "python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); \
                 c.syscall({number},{arguments}); exit(ctypes.get_errno() in (1, 38))' # {name}"
            );
            (Class::Kernel, call)
        }));
    }
    let mut script = String::new();
    for (number, (_, text)) in attempts.iter().enumerate() {
        let line = "( {text}\n) >/dev/null 2>&1 && echo '[through {number}]'\n";
        script += &line
            .replace("{text}", text)
            .replace("{number}", &number.to_string());
    }
    let fill = |text: &str| {
        [
            ("{home}", area.path("home").display().to_string()),
            ("{ours}", area.path("ours").display().to_string()),
            ("{socket}", named(&area)),
            ("{datagrams}", datagrams.display().to_string()),
            ("{out}", area.path("outside").display().to_string()),
            ("{victim}", victim.0.id().to_string()),
            ("{tcp}", tcp.local_addr().unwrap().port().to_string()),
            ("{abstract}", name.clone()),
            ("{memory}", memory.0.clone()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (key, value)| {
            text.replace(key, value)
        })
    };
    let sent = udp.local_addr().unwrap().port();
    script += &[
        "echo x > /dev/udp/127.0.0.1/",
        &sent.to_string(),
        "; echo done",
    ]
    .concat();
    let outcome = bash(&hands, &fill(&script)).await;
    assert!(outcome.content.contains("done"), "{outcome:?}");
    let mut through: Vec<_> = attempts
        .into_iter()
        .enumerate()
        .filter(|(number, _)| outcome.content.contains(&format!("[through {number}]")))
        .map(|(_, attempt)| attempt)
        .collect();
    if udp.recv(&mut [0; 8]).is_ok() {
        through.push((Class::Network, "a datagram".to_owned()));
    }
    hands.close().await;
    Some((through, area.held(enforced.as_ref())))
}

/// The path of a socket where nothing may be read, as those of agents are.
fn named(area: &Area) -> String {
    area.path("home/.ssh/agent").display().to_string()
}

/// What succeeds without a sandbox on this machine does not succeed within one, unless the mechanism
/// says that it does not stop it.
#[tokio::test]
async fn what_is_out_of_bounds_is_not_reached() {
    let (open, _) = through(By::Nothing).await.unwrap();
    let of = |class| open.iter().filter(|(other, _)| *other == class).count();
    // Something of each kind must work here, or nothing is proved.
    for class in [
        Class::Read,
        Class::Processes,
        Class::Signals,
        Class::Network,
        Class::Kernel,
    ] {
        assert!(of(class) > 0, "{class:?}: {open:#?}");
    }
    println!("{} attempts succeed without a sandbox:", open.len());
    for (class, attempt) in &open {
        println!("{class:?}: {attempt}");
    }
    for by in [By::Namespaces, By::Landlock] {
        let Some((through, held)) = through(by).await else {
            continue;
        };
        for (class, attempt) in through {
            let told = held
                .iter()
                .any(|(of, held)| *of == class && matches!(held, Held::Open(_)));
            assert!(told, "{by:?} let through: {attempt}");
        }
    }
}
