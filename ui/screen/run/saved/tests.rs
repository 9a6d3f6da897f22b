use super::*;
use crate::screen::app::tests::{Bench, pod};
use std::os::unix::fs::PermissionsExt as _;
use yoi::protocol::now_ms;
use yoi::protocol::{PodName, State};

fn files(dir: &Path) -> ScreenFiles {
    ScreenFiles::new(dir, Path::new("/data"), Path::new("/repo"))
}

/// A theme and a keymap of this name.
fn of(name: Option<&str>) -> Chosen {
    Chosen { theme: name.map(str::to_owned), keymap: name.map(str::to_owned) }
}

fn writer(dir: &Path, settings: Option<&str>) -> Writer {
    let files = files(dir);
    let (base, damaged) = files.screen();
    assert_eq!(damaged, None);
    Writer { files, base, chosen: Chosen::default(), settings: of(settings) }
}

/// A screen over two Pods that goes on where the last one was.
fn screen(dir: &Path) -> Bench {
    Bench::returning(files(dir).screen().0, vec![pod("a", State::Idle), pod("b", State::Idle)])
}

fn snapshot(screen: &Bench, last: bool) -> Snapshot {
    Snapshot { screen: screen.app.screen_state(), chosen: screen.app.looks.chosen.clone(), last }
}

fn name(text: &str) -> PodName {
    PodName::parse(text).unwrap()
}

#[test]
fn what_a_screen_kept_is_read_again_and_only_its_owner_can() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = screen(dir.path());
    bench.type_in("a secret");
    let mut writer = writer(dir.path(), None);
    writer.write(snapshot(&bench, false)).unwrap();
    let (kept, notice) = files(dir.path()).screen();
    assert_eq!((kept.written_at(1), notice), (bench.app.screen_state().written_at(1), None));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&writer.files.screen), 0o600);
    assert_eq!(mode(writer.files.screen.parent().unwrap()), 0o700);
    let elsewhere = ScreenFiles::new(dir.path(), Path::new("/data"), Path::new("/other"));
    assert_eq!(elsewhere.screen(), (ScreenState::default(), None));
}

#[test]
fn a_screen_was_left_when_any_screen_wrote_it_last_also_if_it_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let bench = screen(dir.path());
    let before = now_ms();
    writer(dir.path(), None).write(snapshot(&bench, true)).unwrap();
    let kept = files(dir.path()).screen().0;
    let ours = bench.app.screen_state();
    assert_ne!(kept, ours, "it says when");
    assert!((before..=now_ms()).any(|at| kept == ours.clone().written_at(at)));
    let (old, new) = (ours.clone().written_at(5), ours.clone().written_at(9));
    assert_eq!(old.clone().merged(&ours, new.clone()), new, "another screen wrote later");
    assert_eq!(new.clone().merged(&ours, old), new);
}

#[test]
fn a_file_that_cannot_be_read_is_kept_aside_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = files(dir.path()).screen;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    for (content, why) in [
        ("{\"version\":1,\"content\":{\"pins\":7}}", "invalid type"),
        ("{\"version\":1,\"cont", "EOF"),
        ("{\"version\":9,\"content\":\"?\"}", "it has version 9, and this program reads 1"),
    ] {
        std::fs::write(&path, content).unwrap();
        let (state, notice) = files(dir.path()).screen();
        assert_eq!(state, ScreenState::default());
        let notice = notice.unwrap();
        assert!(notice.contains(why), "{notice}");
        assert!(notice.ends_with(&format!("it is kept as {}.damaged", path.display())), "{notice}");
        let aside = path.with_extension("json.damaged");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), content);
        assert!(!path.exists());
    }
}

#[test]
fn two_screens_keep_the_drafts_and_the_messages_of_both() {
    let dir = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (screen(dir.path()), screen(dir.path()));
    let (mut first, mut second) = (writer(dir.path(), None), writer(dir.path(), None));
    one.go_to("a");
    one.type_in("sent by one");
    one.press("enter");
    one.type_in("draft for a");
    two.go_to("b");
    two.pass(5);
    two.type_in("sent by two");
    two.press("enter");
    two.type_in("draft for b");
    first.write(snapshot(&one, false)).unwrap();
    second.write(snapshot(&two, false)).unwrap();
    one.press("ctrl-u");
    one.type_in("another");
    first.write(snapshot(&one, true)).unwrap();
    second.write(snapshot(&two, true)).unwrap();
    let mut next = screen(dir.path());
    assert_eq!((next.app.current.clone(), next.draft()), (Some(name("b")), "draft for b".into()));
    next.go_to("a");
    assert_eq!(next.draft(), "another");
    let sent = next.app.composer.history.newest_first().map(|message| message.text.clone());
    assert_eq!(sent.collect::<Vec<_>>(), ["sent by two", "sent by one"]);
}

#[test]
fn a_screen_that_is_left_decides_what_the_next_one_shows() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = screen(dir.path());
    one.go_to("a");
    let mut first = writer(dir.path(), None);
    first.write(snapshot(&one, false)).unwrap();
    let mut two = screen(dir.path());
    two.go_to("b");
    writer(dir.path(), None).write(snapshot(&two, true)).unwrap();
    assert_eq!(screen(dir.path()).app.current, Some(name("b")));
    first.write(snapshot(&one, true)).unwrap();
    assert_eq!(screen(dir.path()).app.current, Some(name("a")));
}

#[test]
fn what_a_verb_chose_counts_until_the_settings_change() {
    let dir = tempfile::tempdir().unwrap();
    let bench = screen(dir.path());
    let chosen = |name: &str| Snapshot { chosen: of(Some(name)), ..snapshot(&bench, false) };
    writer(dir.path(), Some("night")).write(chosen("day")).unwrap();
    assert_eq!(files(dir.path()).chosen(&of(Some("night"))), (of(Some("day")), vec![]));
    assert_eq!(files(dir.path()).chosen(&of(Some("mono"))), (Chosen::default(), vec![]));
    let older = r#"{"version":1,"content":{"theme":"mono","settings":null}}"#;
    let elsewhere = ScreenFiles::new(dir.path(), Path::new("/data"), Path::new("/other"));
    assert_eq!(elsewhere.chosen(&of(Some("night"))).0, of(Some("day")));
    std::fs::write(dir.path().join("screens/theme.json"), older).unwrap();
    let (kept, notices) = files(dir.path()).chosen(&Chosen::default());
    assert_eq!((kept.theme.as_deref(), notices), (Some("mono"), vec![]), "of an older program");
}

#[tokio::test]
async fn the_last_state_is_written_before_the_saver_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = screen(dir.path());
    let (base, _) = files(dir.path()).screen();
    let saver =
        Saver::start(files(dir.path()), base, Chosen::default(), |why| panic!("{why}")).unwrap();
    assert!(saver.save(bench.app.screen_state(), Chosen::default()));
    bench.go_to("b");
    saver.finish(bench.app.screen_state(), Chosen::default()).await;
    assert_eq!(screen(dir.path()).app.current, Some(name("b")));
}
