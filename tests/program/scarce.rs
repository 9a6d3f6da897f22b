//! A host on a machine that has no process and no thread left, and one that may have few files open.

use crate::bench::{Bench, eventually};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// Runs a program among processes of its own, of which there can be 700 with their threads (the kernel gives
/// numbers below 300 only once). Each line it is given takes all that are left, or gives them back.
const SMALL: &str = r#"
import ctypes, os, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), 'call')
user, group = os.geteuid(), os.getegid()
NEWNS, NEWUSER, NEWPID, PRIVATE = 0x20000, 0x10000000, 0x20000000, 16384 | 1 << 18
try:
    check(libc.unshare(NEWNS | NEWPID | (NEWUSER if user else 0)))
except OSError:
    print('none', flush=True)
    sys.exit()
if user:
    for name, text in [('setgroups', 'deny'), ('uid_map', f'{user} {user} 1'), ('gid_map', f'{group} {group} 1')]:
        open(f'/proc/self/{name}', 'w').write(text)
if os.fork():
    os.wait()
    sys.exit()
check(libc.mount(None, b'/', None, PRIVATE, None))
check(libc.mount(b'proc', b'/proc', b'proc', 0, None))
if tuple(int(n) for n in os.uname().release.split('-')[0].split('.')[:2]) < (6, 14):
    print('none', flush=True)
    sys.exit()
open('/proc/sys/kernel/pid_max', 'w').write('700')
host = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open('host.err', 'w'))
print('begun', flush=True)
for line in sys.stdin:
    if line.strip() == 'take':
        go, taken = threading.Event(), []
        try:
            while True:
                thread = threading.Thread(target=go.wait)
                thread.start()
                taken.append(thread)
        except RuntimeError:
            pass
    else:
        go.set()
        for thread in taken:
            thread.join()
    print('done', flush=True)
host.terminate()
host.wait()
os._exit(0)
"#;

#[test]
fn a_host_goes_on_where_no_thread_can_be_made_and_works_again_when_there_are_some() {
    let bench = Bench::new();
    let host = bench.command(&["--no-ui", "--serve"]);
    let mut small = Command::new("python3");
    small.args(["-c", SMALL]).arg(host.get_program()).args(host.get_args()).env_clear();
    small.envs(host.get_envs().filter_map(|(name, value)| Some((name, value?))));
    small.current_dir(bench.ws()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut small = small.spawn().expect("python3");
    let mut answers = BufReader::new(small.stdout.take().expect("a pipe")).lines();
    let mut answer = || answers.next().expect("an answer").expect("a line");
    if answer() == "none" {
        eprintln!("not covered: this machine gives no processes of its own with a limit");
        small.wait().expect("python3");
        return;
    }
    eventually("the host serves", || {
        bench.socket().is_some_and(|socket| UnixStream::connect(socket).is_ok())
    });
    let mut orders = small.stdin.take().expect("a pipe");
    let mut order = |word: &str| orders.write_all(word.as_bytes()).expect("a pipe");
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a greet you"]);
    order("take\n");
    assert_eq!(answer(), "done");
    // The command cannot be started, and the run goes on to its end with the reason.
    let said = bench.yoi(&["-c", "send a run ls"]);
    let log = bench.yoi(&["log", "a"]);
    assert!(
        log.out.contains("this machine allows you no more processes or threads"),
        "{said:?} {log:?}"
    );
    assert!(log.out.contains("It said:"), "{said:?} {log:?}");
    order("give\n");
    assert_eq!(answer(), "done");
    bench.yoi(&["-c", "send a run echo again-$((40 + 2))"]);
    let log = bench.yoi(&["log", "a"]);
    assert!(log.out.contains("again-42"), "{log:?}");
    drop(orders);
    small.wait().expect("python3");
    let err = std::fs::read_to_string(bench.ws().join("host.err")).expect("its standard error");
    assert!(!err.contains("panicked"), "{err}");
}

#[test]
fn programs_that_only_connect_keep_no_person_out_of_a_host_with_few_files() {
    let bench = Bench::new();
    let mut few = bench.shell("ulimit -n 256; exec yoi --no-ui --serve");
    let mut host = few.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a shell");
    eventually("the host serves", || {
        bench.socket().is_some_and(|socket| UnixStream::connect(socket).is_ok())
    });
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let socket = bench.socket().expect("a socket");
    let silent: Vec<_> =
        (0..300).map(|_| UnixStream::connect(&socket).expect("a connection")).collect();
    let said = bench.yoi(&["-c", "send a hello"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let log = bench.yoi(&["log", "a"]);
    assert!(log.out.contains("heard: hello"), "{log:?}");
    drop(silent);
    crate::bench::signal(host.id(), "TERM");
    host.wait().expect("the host ends");
}
