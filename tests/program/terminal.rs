//! The dashboard in a real terminal: opened, typed into, left in every way there is.

use crate::bench::{Bench, alive, eventually, signal};
use crate::pty::Terminal;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

const SCRIPT: &str = r#"
[[when]]
says = "tell *"
[[when.step]]
text = "It begins.{middle} And it ends here."
chunk = 4
delay_ms = 30

[[when]]
says = "slow*"
[[when.step]]
text = "word "
repeat = 5000
chunk = 5
delay_ms = 20

[[when]]
any = true
text = "heard: {1}"
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    // Long enough to be seen before its end on a busy machine.
    bench.play(&SCRIPT.replace("{middle}", &" The middle of it.".repeat(30)));
    bench
}

/// The dashboard of a workspace in which no Pod works yet, on the scripted model.
fn dashboard(bench: &Bench) -> Terminal {
    let terminal = Terminal::open(bench, &["--model", &bench.model()]);
    terminal.waits_for("what to work on");
    terminal
}

#[test]
fn the_dashboard_opens_streams_an_answer_and_leaves_the_terminal_as_it_was() {
    let bench = bench();
    let mut terminal = dashboard(&bench);
    terminal.press("tell me a story\r");
    terminal.waits_for("It begins.");
    assert!(!terminal.text().contains("ends here"), "the answer streams");
    terminal.waits_for("And it ends here.");
    terminal.waits_for("idle");
    terminal.press(":quit\r");
    assert_eq!(terminal.ends(), 0);
    eventually("the terminal is as before", || terminal.is_as_before());
    assert!(terminal.is_cooked());
    assert!(bench.host_pid().is_some(), "the host goes on");
}

#[test]
fn the_next_dashboard_shows_the_same_transcript() {
    let bench = bench();
    let mut first = dashboard(&bench);
    first.press("remember the word mangrove\r");
    first.waits_for("heard: remember the word mangrove");
    first.waits_for("idle");
    first.press(":quit\r");
    assert_eq!(first.ends(), 0);
    let second = Terminal::open(&bench, &[]);
    second.waits_for("heard: remember the word mangrove");
}

#[test]
fn two_dashboards_show_the_same() {
    let bench = bench();
    let mut one = dashboard(&bench);
    one.press("first words\r");
    one.waits_for("heard: first words");
    let mut other = Terminal::open(&bench, &["--pod", "ws"]);
    other.waits_for("heard: first words");
    other.press("second words\r");
    for terminal in [&one, &other] {
        terminal.waits_for("heard: second words");
    }
}

#[test]
fn sigterm_restores_the_terminal_and_leaves_the_pods_running() {
    let bench = bench();
    let mut terminal = dashboard(&bench);
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    signal(terminal.pid(), "TERM");
    assert_eq!(terminal.ends(), 143);
    eventually("the terminal is as before", || terminal.is_as_before());
    assert!(terminal.is_cooked());
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "running");
}

#[test]
fn a_vanished_terminal_ends_the_dashboard_and_nothing_else() {
    let bench = bench();
    let mut terminal = dashboard(&bench);
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    let pid = terminal.pid();
    terminal.vanish();
    eventually("the dashboard is gone", || !alive(pid));
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "running");
}

#[test]
fn a_killed_dashboard_stops_no_pod() {
    let bench = bench();
    let mut terminal = dashboard(&bench);
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    signal(terminal.pid(), "KILL");
    terminal.ends();
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "running");
}

#[test]
fn a_dashboard_finds_the_host_that_another_one_started() {
    let bench = bench();
    let mut one = dashboard(&bench);
    one.press("slow, please\r");
    one.waits_for("word word");
    let other = Terminal::open(&bench, &["--pod", "ws"]);
    other.waits_for("running");
    signal(bench.host_pid().expect("a host"), "KILL");
    for terminal in [&one, &other] {
        terminal.waits_for("unknown");
        terminal.waits_for("the host ended");
    }
    one.press("\r");
    for terminal in [&one, &other] {
        terminal.waits_for("interrupted here");
        terminal.waits_for("paused");
    }
}

#[test]
fn inside_the_host_ends_with_the_screen_and_its_turn_is_paused() {
    let bench = bench();
    let model = bench.model();
    let mut terminal = Terminal::open(&bench, &["--inside", "--model", &model]);
    terminal.waits_for("what to work on");
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    signal(terminal.pid(), "TERM");
    assert_eq!(terminal.ends(), 143);
    assert!(bench.host_pid().is_none(), "no host is left");
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "paused");
}

#[test]
fn a_key_is_typed_unseen() {
    let bench = bench();
    let mut terminal = Terminal::open(&bench, &["auth", "anthropic"]);
    terminal.waits_for("key for anthropic");
    eventually("the terminal does not echo", || !terminal.is_cooked());
    terminal.press("sk-unseen\r");
    assert_eq!(terminal.ends(), 0);
    terminal.waits_for("stored the key");
    assert!(!terminal.text().contains("sk-unseen"), "{}", terminal.text());
    assert!(terminal.is_cooked());
    assert_eq!(bench.yoi(&["auth"]).out, "anthropic\n");
}

/// An editor that says where it stands, and writes that when it gets Ctrl+C.
const EDITOR: &str = r#"#!/bin/sh
set -- "$1" $(ps -o pgid= -o tpgid= -o sid= -p $$)
place=""
[ "$2" = "$3" ] && place="in the foreground"
[ "$2" = "$4" ] || place="$place, in a group of its own"
trap 'printf "interrupted %s" "$place" > "$1"; exit 0' INT
echo THE EDITOR IS UP
while :; do read -r line; echo "READ $line"; done
"#;

fn dashboard_with_editor(bench: &Bench) -> Terminal {
    use std::os::unix::fs::PermissionsExt as _;
    let editor = bench.path("editor");
    std::fs::write(&editor, EDITOR).expect("a writable directory");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&editor, mode).expect("a file of ours");
    let env = [("EDITOR", editor.to_str().expect("a plain path"))];
    let terminal = Terminal::with_env(bench, &["--model", &bench.model()], &env);
    terminal.waits_for("what to work on");
    terminal
}

#[test]
fn ctrl_c_in_the_editor_reaches_the_editor_alone() {
    let bench = bench();
    let mut terminal = dashboard_with_editor(&bench);
    terminal.press("\x07");
    terminal.waits_for("THE EDITOR IS UP");
    terminal.press("typed there\r");
    terminal.waits_for("READ typed there");
    terminal.press("\x03");
    terminal.waits_for("interrupted in the foreground, in a group of its own");
    terminal.press(" and here");
    terminal.waits_for("of its own and here");
}

#[test]
fn the_dashboard_ignores_an_interrupt_while_the_editor_owns_the_terminal() {
    let bench = bench();
    let mut terminal = dashboard_with_editor(&bench);
    terminal.press("\x07");
    terminal.waits_for("THE EDITOR IS UP");
    signal(terminal.pid(), "INT");
    terminal.press("still\r");
    terminal.waits_for("READ still");
    terminal.press("\x03");
    terminal.waits_for("interrupted in the foreground");
    signal(terminal.pid(), "INT");
    assert_eq!(terminal.ends(), 130);
}

#[test]
fn a_suspended_dashboard_gives_the_shell_its_terminal_and_takes_it_again() {
    let bench = bench();
    let (script, number) = (bench.path("wrapper"), bench.path("number"));
    let (yoi, model) = (env!("CARGO_BIN_EXE_yoi"), bench.model());
    let text = format!("sh -c 'echo $$ > {}; exec {yoi} --model {model}'\n:\n", number.display());
    std::fs::write(&script, text).expect("a writable directory");
    let mut terminal = Terminal::shell(&bench);
    terminal.waits_for("shell>");
    terminal.press(&format!("sh {}\r", script.display()));
    terminal.waits_for("what to work on");
    terminal.press("a draft");
    terminal.waits_for("a draft");

    terminal.press("\x1a");
    terminal.waits_for("Stopped");
    terminal.press("fg\r");
    terminal.waits_for("a draft");
    terminal.press(" goes on");
    terminal.waits_for("a draft goes on");

    let pid = std::fs::read_to_string(&number).expect("a file of ours");
    let pid = pid.trim().parse().expect("a number");
    for (name, more) in [("TSTP", " after a stop"), ("STOP", " and another")] {
        signal(pid, name);
        if name == "TSTP" {
            // The first stop is still to be read above.
            let again = terminal.shows(|text| text.matches("Stopped").count() == 2);
            again.expect("the shell says that it was stopped");
            terminal.press("fg\r");
        } else {
            signal(pid, "CONT");
        }
        terminal.waits_for("a draft goes on");
        terminal.press(more);
        terminal.waits_for(more);
    }
    terminal.press("\x15:quit\r");
    terminal.waits_for("shell>");
}

#[test]
fn a_terminal_without_a_size_gets_the_usual_one() {
    let bench = bench();
    let terminal = Terminal::sized(&bench, &["--model", &bench.model()], 0, 0);
    terminal.waits_for("what to work on");
}

#[test]
fn an_arrow_key_in_two_reads_types_nothing() {
    let bench = bench();
    let mut terminal = dashboard(&bench);
    terminal.press("ab\x1b");
    terminal.waits_for("ab");
    terminal.press("[Dc");
    terminal.waits_for("acb");
}

#[test]
fn a_pointer_that_moves_behind_a_key_leaves_the_key_on_the_screen() {
    let bench = bench();
    let mut terminal = dashboard(&bench);
    for word in ["one", "two", "three", "four"] {
        terminal.press(&format!("{word}\x1b[<35;10;10M\x1b[<35;11;10M"));
        terminal.waits_for(word);
    }
}

#[test]
#[cfg(feature = "crash-points")]
fn a_panic_restores_the_terminal_before_it_is_printed() {
    let bench = bench();
    let mut terminal = Terminal::open(&bench, &[]);
    terminal.waits_for("what to work on");
    terminal.press("panic!");
    assert_ne!(terminal.ends(), 0);
    eventually("the terminal is as before", || terminal.is_as_before());
    assert!(terminal.is_cooked());
    terminal.waits_for("the panic that was asked for");
}

/// A script whose first request meets this fault.
fn faulty(fault: &str, text: &str) -> String {
    format!("[[when]]\nany = true\n[[when.step]]\ntext = '{text}'\nfault = {{ {fault} }}\n")
}

#[test]
fn escape_pauses_a_run_that_waits_for_its_provider_and_enter_goes_on_with_it() {
    let bench = Bench::new();
    bench.play(&faulty("status = 429, retry_after = 3600, times = 1", "served at last"));
    let mut terminal = Terminal::sized(&bench, &["--model", &bench.model()], 120, 40);
    terminal.waits_for("what to work on");
    terminal.press("hello\r");
    terminal.waits_for("its provider takes no requests now, tries again");
    terminal.waits_for("Esc pauses");
    terminal.press("\x1b");
    terminal.waits_for("Enter continues");
    assert!(terminal.text().contains("paused") && terminal.text().contains("▌ hello"));
    terminal.press("\r");
    terminal.waits_for("served at last");
}

#[test]
fn a_model_that_is_chosen_in_a_wait_answers_and_a_mistake_in_the_settings_stays_until_corrected() {
    let bench = Bench::new();
    bench.settings("modle = 'x'\n");
    bench.play(&faulty("status = 429, retry_after = 3600, times = 99", "never"));
    let other = bench.path("other.toml");
    std::fs::write(&other, "[[when]]\nany = true\ntext = 'by the other'\n").expect("a new file");
    let mut terminal = Terminal::sized(&bench, &["--model", &bench.model()], 120, 40);
    terminal.waits_for("what to work on");
    terminal.press("hello\r");
    terminal.waits_for("its provider takes no requests now, tries again");
    terminal.press(&format!(":model rehearsal:{}\r", other.display()));
    terminal.waits_for("by the other");
    terminal.waits_for("`modle`");
    bench.settings("");
    terminal.press("hello again\r");
    eventually("the mistake is gone", || !terminal.text().contains("`modle`"));
}

#[test]
fn an_open_screen_reads_keys_again_that_were_written_and_follows_a_light_ground() {
    let bench = bench();
    bench.settings("");
    let keys = bench.path("home/config/keymap.toml");
    let exact = [("COLORTERM", "truecolor")];
    let mut terminal = Terminal::start(&bench, &["--model", &bench.model()], &exact, (120, 40));
    terminal.waits_for("what to work on");
    std::fs::write(&keys, "[everywhere]\n\"f7\" = \"palette\"\n").expect("written");
    terminal.waits_for("the keymap was read again");
    std::fs::write(&keys, "[everywhere]\n\"f7\" = \"dance\"\n").expect("written");
    terminal.waits_for("keymap.toml:2:8: no such action `dance`");
    terminal.press("\x1b[18~");
    terminal.waits_for("type to search");
    // The ground of day, as its theme says it.
    assert_eq!(terminal.wrote("48;2;251;250;247"), 0);
    terminal.press("\x1b]11;rgb:ffff/ffff/ffff\x1b\\");
    eventually("the light theme", || terminal.wrote("48;2;251;250;247") > 0);
    terminal.waits_for("type to search");
}

#[test]
fn an_address_is_a_hyperlink_in_each_of_its_rows_where_the_terminal_knows_them() {
    let bench = bench();
    let address = format!("https://example.org/{}", "long/".repeat(20));
    for (pod, term, has_links) in [("ann", "xterm-256color", true), ("bob", "linux", false)] {
        let args = ["--model", &bench.model(), "--pod", pod];
        let mut terminal = Terminal::with_env(&bench, &args, &[("TERM", term)]);
        terminal.waits_for("what to work on");
        terminal.press(&format!("see {address}\r"));
        terminal.waits_for("heard: ");
        terminal.paints_anew();
        let whole = terminal.wrote(&format!(";{address}\x1b\\"));
        assert_eq!(whole >= 2, has_links, "{term}: {whole}");
        assert_eq!(terminal.wrote("\x1b]8;id="), terminal.wrote("\x1b]8;;\x1b\\"), "{term}");
        assert_eq!(terminal.wrote("\x1b]8;") > 0, has_links, "{term}");
    }
}

#[test]
fn the_file_of_a_call_opens_in_the_editor_at_its_line() {
    let bench = bench();
    let file = bench.ws().join("notes.txt");
    std::fs::write(&file, "one\ntwo\nthree\n").expect("written");
    bench.play(
        r#"
[[when]]
says = "read*"
[[when.step]]
call = [{ name = "Read", args = { file_path = "{cwd}/notes.txt", offset = 1, limit = 1 } }]
[[when.step]]
text = "That was it."
"#,
    );
    let (editor, opened) = (bench.path("vim"), bench.path("opened"));
    let script = format!("#!/bin/sh\nprintf '%s ' \"$@\" > '{}'\n", opened.display());
    std::fs::write(&editor, script).expect("written");
    std::fs::set_permissions(&editor, Permissions::from_mode(0o755)).expect("a program");
    let env = [("EDITOR", editor.to_str().expect("a plain path"))];
    let mut terminal = Terminal::with_env(&bench, &["--model", &bench.model()], &env);
    terminal.waits_for("what to work on");
    terminal.press("read it\r");
    terminal.waits_for("That was it.");
    terminal.press("\x18r");
    terminal.press("kko");
    let wanted = format!("+2 {} ", file.display());
    eventually("the editor has file and line", || {
        std::fs::read_to_string(&opened).is_ok_and(|text| text == wanted)
    });
    terminal.waits_for("That was it.");
}

/// Asks a model and selects `heard: see` in its answer with the mouse.
fn selects_with_the_mouse(terminal: &mut Terminal) {
    terminal.press("see this\r");
    // The first screen may show the same text of another Pod.
    terminal.waits_without("what to work on");
    terminal.waits_for("heard: see this");
    terminal.waits_for("idle");
    terminal.paints_anew();
    let text = terminal.text();
    let (row, line) =
        (1..).zip(text.lines()).find(|(_, line)| line.contains("heard:")).expect("it");
    let column = line[..line.find("heard:").expect("it")].chars().count() + 1;
    let end = column + "heard: see".len() - 1;
    terminal.press(&format!("\x1b[<0;{column};{row}M\x1b[<32;{end};{row}M\x1b[<0;{end};{row}m"));
}

/// `heard: see` for the clipboard of a terminal.
const SEQUENCE: &str = "\x1b]52;c;aGVhcmQ6IHNlZQ==";

#[test]
fn text_that_the_mouse_selects_reaches_the_clipboard() {
    let bench = bench();
    let mut terminal = dashboard(&bench);
    selects_with_the_mouse(&mut terminal);
    terminal.waits_for("copied 10 chars (OSC 52)");
    assert_eq!(terminal.wrote(SEQUENCE), 1);
}

#[test]
fn a_dumb_terminal_is_refused_with_the_way_out() {
    let bench = bench();
    let mut terminal = Terminal::with_env(&bench, &[], &[("TERM", "dumb")]);
    terminal.waits_for("TERM=dumb: use --no-ui");
    assert_eq!(terminal.ends(), 2);
    assert_eq!(terminal.wrote("\x1b"), 0, "nothing but text was written");
}

#[test]
fn a_copy_goes_through_the_program_of_the_display_and_by_the_terminal_where_that_fails() {
    let bench = bench();
    let programs = bench.path("programs");
    std::fs::create_dir(&programs).expect("a new directory");
    let (program, copy) = (programs.join("wl-copy"), bench.path("copy"));
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a PATH"));
    let env = [("WAYLAND_DISPLAY", "wayland-0"), ("PATH", path.as_str())];
    let takes = format!("#!/bin/sh\ncat > '{0}.part'; mv '{0}.part' '{0}'\n", copy.display());
    for (pod, script) in [("ann", takes.as_str()), ("bob", "#!/bin/sh\nexit 3\n")] {
        std::fs::write(&program, script).expect("written");
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
        let args = ["--model", &bench.model(), "--pod", pod];
        let mut terminal = Terminal::with_env(&bench, &args, &env);
        terminal.waits_for("what to work on");
        selects_with_the_mouse(&mut terminal);
        if pod == "ann" {
            terminal.waits_for("copied 10 chars (wl-copy)");
            eventually("the program has the copy", || copy.exists());
            assert_eq!(std::fs::read_to_string(&copy).expect("a copy"), "heard: see");
            assert_eq!(terminal.wrote(SEQUENCE), 0);
        } else {
            terminal.waits_for("wl-copy: exit status: 3");
            eventually("the terminal has the copy", || terminal.wrote(SEQUENCE) == 1);
        }
    }
}
