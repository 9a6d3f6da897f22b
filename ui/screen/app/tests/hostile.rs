//! Text of others on the dashboard: wherever a Pod, a model, a provider or a file name puts it, no
//! escape acts, and no character is hidden.

use super::*;

/// Visible words with everything between them that a terminal would act on or not show.
const HOSTILE: [&str; 6] = [
    "evil\u{1b}[2K\rtext",
    "evil\u{1b}]0;title\u{7}text\u{1b}]52;c;Zm9v\u{1b}\\",
    "evil\u{9b}31mtext\u{85}more\u{9d}0;t\u{9c}",
    "evil\u{202e}text\u{2066}\u{200b}\u{e0041}\u{feff}",
    "evil\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}text",
    "evil\ntext\n▲ alice  Bash ls\u{2028}more\u{8}\u{7f}",
];

/// Where text of others gets onto the dashboard, each with what it shows at least.
type Place = (&'static str, fn(&mut Bench, &str));

const PLACES: [Place; 12] = [
    ("why", |bench, text| {
        let why = Some(text.to_owned());
        bench.shown(PodInfo { why, ..pod("alice", State::NeedsYou) });
    }),
    ("note", |bench, text| {
        bench.shown(PodInfo { notes: vec![text.into()], ..pod("alice", State::Idle) });
    }),
    ("model", |bench, text| {
        bench.shown(PodInfo { model: text.into(), ..pod("alice", State::Idle) });
    }),
    ("queue", |bench, text| {
        bench.shown(PodInfo { queue: vec![queued("1", text)], ..pod("alice", State::Running) });
    }),
    ("refusal", |bench, text| {
        bench.press(":");
        bench.type_in("who x");
        let asked = bench.press("enter");
        refuse(bench, asked, text);
    }),
    ("action of a request", |bench, text| approvals(bench, |request| request.action = text.into())),
    ("reason of a request", |bench, text| {
        approvals(bench, |request| request.reason = Some(text.into()))
    }),
    ("why of a request", |bench, text| approvals(bench, |request| request.because = text.into())),
    ("rule of a request", |bench, text| {
        approvals(bench, |request| request.rule.pattern = text.into())
    }),
    ("line of a rule", |bench, text| {
        approvals(bench, |request| request.rule.pattern = text.into());
        bench.screen();
        bench.confirm("A");
    }),
    ("path of a request", |bench, text| {
        approvals(bench, |request| {
            let path = format!("/repo/{text}");
            request.lease = Some(yoi::scope::Rule::new(path, yoi::scope::Permission::Write));
        });
    }),
    ("preview of a rewind", |bench, text| {
        bench.press(":");
        bench.type_in("rewind");
        let asked = bench.press("enter");
        let targets = vec![rewind_target(1, text), rewind_target(2, text)];
        answer(
            bench,
            asked,
            Event::RewindTargets { head_entries: 12, targets, undo: None, redo: None },
        );
    }),
];

/// Alice asks for something, and all of her request is looked at.
fn approvals(bench: &mut Bench, change: impl FnOnce(&mut yoi::protocol::ApprovalRequest)) {
    let mut request = approval("1", "alice", "ls");
    change(&mut request);
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
}

#[test]
fn no_escape_sequence_works_and_no_character_is_hidden_in_text_of_others() {
    for (place, put) in PLACES {
        for text in HOSTILE {
            for (columns, rows) in [(80, 24), (120, 40)] {
                let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
                bench.size(columns, rows);
                put(&mut bench, text);
                let screen = bench.screen();
                let shown = screen.contains("evil") || columns < 120;
                assert!(shown, "{place}: {text:?} is not shown:\n{screen}");
                for line in screen.lines() {
                    let safe = yoi::text::SafeText::line(line);
                    assert_eq!(safe, line, "{place}: {text:?}");
                    assert!(!line.contains('\u{fffd}'), "{place}: only the frame caught {text:?}");
                }
            }
        }
    }
}
