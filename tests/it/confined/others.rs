//! Attempts at what belongs to others on the machine, by ways beside the usual ones: their memory, their
//! place in the schedule, their sockets, and the network by every kind of socket that there is.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};

use undertext::sandbox::{Class, Held};

use super::{Area, By, bash};

/// A process that holds a secret in its memory, and where.
struct Victim {
    child: Child,
    address: String,
}

impl Victim {
    #[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
    fn new() -> Self {
        let mut command = Command::new("sleep");
        let child = command.arg("600").stdin(Stdio::null()).spawn().unwrap();
        // Once it is `sleep`, its first bytes are those of a program.
        let maps = loop {
            let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
            if maps.contains("sleep") || maps.contains("coreutils") {
                break maps;
            }
            std::thread::yield_now();
        };
        let address = maps.split('-').next().unwrap().to_owned();
        Self { child, address }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A line of Python that fails if what it tries does.
fn python(text: &str) -> String {
    format!("python3 -c '{text}'")
}

/// One that speaks of sockets.
fn socket(text: &str) -> String {
    python(&format!("from socket import *; {text}"))
}

/// The numbers that came as datagrams.
fn came(socket: &UdpSocket) -> Vec<usize> {
    socket.set_nonblocking(true).unwrap();
    let mut bytes = [0; 16];
    let mut numbers = Vec::new();
    while let Ok(length) = socket.recv(&mut bytes) {
        let number = std::str::from_utf8(&bytes[..length]).unwrap();
        numbers.push(number.parse().unwrap());
    }
    numbers
}

/// What is tried: commands that succeed if they get through, or send their number there.
fn attempts() -> Vec<(Class, String)> {
    let call = "import ctypes; c = ctypes.CDLL(None); ";
    let memory = |name: &str| {
        python(&format!(
            "{call}n = ctypes.c_ulong * 2; b = ctypes.create_string_buffer(4); \
             exit(c.{name}({{victim}}, n(ctypes.addressof(b), 4), 1, n(0x{{address}}, 4), 1, 0) != 4 \
             or b.raw != b\"\\x7fELF\")"
        ))
    };
    let mut attempts = vec![
        (Class::Processes, memory("process_vm_readv")),
        (
            Class::Processes,
            python(
                "f = open(\"/proc/{victim}/mem\", \"rb\"); f.seek(0x{address}); exit(f.read(4) != b\"\\x7fELF\")",
            ),
        ),
        (
            Class::Processes,
            python(&format!(
                "{call}exit(c.syscall(312, {{victim}}, {{victim}}, 0, 0, 0) < 0)"
            )),
        ),
        (
            Class::Signals,
            python("import os, signal; signal.pidfd_send_signal(os.pidfd_open({victim}), 0)"),
        ),
        (
            Class::Signals,
            python(&format!(
                "{call}exit(c.syscall(234, {{victim}}, {{victim}}, 0) != 0)"
            )),
        ),
        (
            Class::Signals,
            python(&format!(
                "{call}i = ctypes.create_string_buffer(128); i[8:12] = b\"\\xff\\xff\\xff\\xff\"; \
                 exit(c.syscall(129, {{victim}}, 0, i) != 0)"
            )),
        ),
        (
            Class::Limits,
            "prlimit --pid {victim} --nofile=64".to_owned(),
        ),
        (
            Class::Arguments,
            "tr '\\0' ' ' < /proc/{victim}/cmdline | grep -q 'sleep 600'".to_owned(),
        ),
    ];
    attempts.extend(network());
    // Where buses, containers, displays and agents have theirs.
    for name in ["{temporary}", "{shared}", "{home}"] {
        attempts.push((
            Class::Sockets,
            socket(&format!("socket(AF_UNIX).connect(\"{name}/stream\")")),
        ));
        attempts.push((
            Class::Sockets,
            socket(&format!(
                "socket(AF_UNIX, SOCK_DGRAM).sendto(b\"x\", \"{name}/datagram\")"
            )),
        ));
    }
    attempts
}

/// What is tried of the network.
fn network() -> Vec<(Class, String)> {
    vec![
        // By other kinds of sockets, and to other addresses of the same machine.
        (
            Class::Network,
            socket("create_connection((\"::1\", {tcp6}), 3)"),
        ),
        (
            Class::Network,
            socket("create_connection((\"127.1.2.3\", {tcp}), 3)"),
        ),
        (
            Class::Network,
            socket("create_connection((\"0.0.0.0\", {tcp}), 3)"),
        ),
        (
            Class::Network,
            socket(
                "socket(AF_INET, SOCK_STREAM).sendto(b\"x\", 0x20000000, (\"127.0.0.1\", {tcp}))",
            ),
        ),
        (
            Class::Network,
            socket("socket(AF_INET, SOCK_STREAM, 262).connect((\"127.0.0.1\", {tcp}))"),
        ),
        (
            Class::Network,
            socket("socket(AF_INET, SOCK_DGRAM).sendto(b\"{number}\", (\"127.0.0.1\", {udp}))"),
        ),
        (
            Class::Network,
            socket(
                "socket(AF_INET, SOCK_DGRAM).sendmsg([b\"{number}\"], [], 0, (\"127.0.0.1\", {udp}))",
            ),
        ),
        (
            Class::Network,
            socket("socket(AF_INET6, SOCK_DGRAM).sendto(b\"{number}\", (\"::1\", {udp6}))"),
        ),
        // As a look-up of a name asks.
        (
            Class::Network,
            socket(
                "s = socket(AF_INET, SOCK_DGRAM); s.connect((\"127.0.0.1\", {udp})); \
                 s.send(b\"{number}\")",
            ),
        ),
        (Class::Network, "exec 3<>/dev/tcp/::1/{tcp6}".to_owned()),
    ]
}

/// Which attempts succeed.
async fn through(by: By) -> Option<(Vec<(Class, String)>, Vec<(Class, Held)>)> {
    let area = Area::new();
    let (hands, enforced) = area.hands(by).await?;
    let victim = Victim::new();
    let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Where there is no newer internet, nothing is reached by it.
    let tcp6 = TcpListener::bind("[::1]:0");
    let udp6 = UdpSocket::bind("[::1]:0");
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    let shared = tempfile::tempdir_in("/dev/shm").unwrap();
    let homes = [temporary.path(), shared.path(), &area.path("home/.ssh")].map(|path| {
        let datagrams = UnixDatagram::bind(path.join("datagram")).unwrap();
        (UnixListener::bind(path.join("stream")).unwrap(), datagrams)
    });
    let fill = |text: &str| {
        [
            ("{victim}", victim.child.id().to_string()),
            ("{address}", victim.address.clone()),
            ("{tcp}", tcp.local_addr().unwrap().port().to_string()),
            ("{udp}", udp.local_addr().unwrap().port().to_string()),
            (
                "{tcp6}",
                tcp6.as_ref()
                    .map_or(9, |it| it.local_addr().unwrap().port())
                    .to_string(),
            ),
            (
                "{udp6}",
                udp6.as_ref()
                    .map_or(9, |it| it.local_addr().unwrap().port())
                    .to_string(),
            ),
            ("{temporary}", temporary.path().display().to_string()),
            ("{shared}", shared.path().display().to_string()),
            ("{home}", area.path("home/.ssh").display().to_string()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (key, value)| {
            text.replace(key, value)
        })
    };
    let attempts = attempts();
    let script: String = (0..)
        .zip(&attempts)
        .map(|(number, (_, text))| {
            format!(
                "( {} ) >/dev/null 2>&1 && echo '[through {number}]'\n",
                fill(text).replace("{number}", &number.to_string())
            )
        })
        .collect();
    let outcome = bash(&hands, &format!("{script}echo done")).await;
    assert!(outcome.content.ends_with("done\n"), "{outcome:?}");
    hands.close().await;
    drop(homes);
    // A datagram is sent whether anybody is there or not.
    let mut numbers = came(&udp);
    numbers.extend(udp6.iter().flat_map(came));
    let is_through = |number: usize, text: &str| {
        let said = format!("[through {number}]");
        numbers.contains(&number) || !text.contains("{number}") && outcome.content.contains(&said)
    };
    let through = attempts.into_iter().enumerate();
    let through = through.filter(|(number, (_, text))| is_through(*number, text));
    let through = through.map(|(_, attempt)| attempt).collect();
    Some((through, area.held(enforced.as_ref())))
}

#[tokio::test]
async fn what_belongs_to_others_is_not_reached_by_other_ways() {
    let (open, _) = through(By::Nothing).await.unwrap();
    println!(
        "{} of {} succeed without a sandbox",
        open.len(),
        attempts().len()
    );
    for attempt in attempts() {
        if !open.contains(&attempt) {
            println!("does not: {}", attempt.1);
        }
    }
    for class in [
        Class::Processes,
        Class::Signals,
        Class::Limits,
        Class::Network,
        Class::Sockets,
    ] {
        assert!(open.iter().any(|(of, _)| *of == class), "{class:?}");
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
