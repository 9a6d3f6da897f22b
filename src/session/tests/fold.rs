//! Folds with and without a checkpoint.

use crate::protocol::entry::{Entry, Fact, Kept};
use crate::protocol::item::Item;
use crate::protocol::name::SegmentId;
use crate::session::fold::{Fold, fold, fold_with};
use crate::session::jump::{Jump, JumpKind};
use crate::session::lineage::LogPosition;
use crate::session::outputs;
use crate::session::stretches::stretches;
use crate::session::tests::bench::{
    Bench, call, completed, invoke, lines, notified, result, rolled_back, said, start, user,
};
use crate::session::{Replay, load_output, replay, rewind_targets};
use proptest::prelude::*;
use serde_json::json;
use std::io::Write as _;

/// An output that is left in the log.
const LONG: usize = 20_000;

/// One thing that happens to a log.
#[derive(Clone, Debug)]
enum Step {
    Turn {
        output: usize,
    },
    /// The name of a tool whose results the host reads.
    Tasks,
    /// A run that has not ended.
    Open,
    Damage,
    RolledBack,
    /// To the beginning of one of the lines so far; larger numbers count from the newest on.
    Jump {
        kind: JumpKind,
        line: prop::sample::Index,
        older: bool,
    },
    Compacted,
    /// A fold that leaves a checkpoint.
    Fold,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![Just(JumpKind::Rewound), Just(JumpKind::Undone)];
    let jump = (kind, any::<prop::sample::Index>(), any::<bool>())
        .prop_map(|(kind, line, older)| Step::Jump { kind, line, older });
    let step = prop_oneof![
        4 => prop_oneof![Just(9), Just(LONG), Just(3 * LONG)].prop_map(|output| Step::Turn { output }),
        1 => Just(Step::Tasks),
        1 => Just(Step::Open),
        1 => Just(Step::Damage),
        1 => Just(Step::RolledBack),
        2 => jump,
        1 => Just(Step::Compacted),
        4 => Just(Step::Fold),
    ];
    prop::collection::vec(step, 1..24)
}

/// A log that grows, and where its lines begin.
struct Growing {
    bench: Bench,
    at: Vec<LogPosition>,
    steps: usize,
}

impl Growing {
    fn new() -> Self {
        Self::on(Bench::new())
    }

    fn on(bench: Bench) -> Self {
        let mut growing = Self { bench, at: Vec::new(), steps: 0 };
        growing.append(&[growing.bench.start()]);
        growing
    }

    /// A log of which the host reads each range with two threads.
    fn read_by_two_threads() -> Self {
        let mut bench = Bench::new();
        bench.files = bench.files.with_two_threads_from(1);
        Self::on(bench)
    }

    fn append(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.line(&lines(std::slice::from_ref(entry)));
        }
    }

    fn line(&mut self, line: &[u8]) {
        let path = self.bench.path();
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        let offset = file.metadata().unwrap().len();
        self.at.push(LogPosition { segment: self.bench.segment, offset });
        file.write_all(line).unwrap();
    }

    fn play(&mut self, step: &Step) {
        self.steps += 1;
        let id = format!("c{}", self.steps);
        match step {
            Step::Turn { output } => self.turn(&id, "Read", *output),
            Step::Tasks => self.turn(&id, "TaskList", LONG),
            Step::Open => self.append(&[invoke(), user("go"), call(&id, "Bash")]),
            Step::Damage => self.line(b"{\"kind\":\"user_inp\n"),
            Step::RolledBack => {
                let run = [invoke(), user("nobody answers"), notified("news")];
                self.append(&run);
                self.append(&[rolled_back(&run[0])]);
            }
            Step::Jump { kind, line, older } => {
                let own = |at: &&LogPosition| *older || at.segment == self.bench.segment;
                let lines: Vec<_> = self.at.iter().filter(own).skip(1).copied().collect();
                if !lines.is_empty() {
                    let to = *line.get(&lines);
                    self.append(&[Jump::entry(*kind, to, json!({}))]);
                }
            }
            Step::Compacted => {
                let older = self.bench.segment;
                self.bench.segment = SegmentId::new();
                let mut begin = start(self.bench.session, Some(older));
                let Fact::SegmentStart { history, .. } = &mut begin.fact else { unreachable!() };
                let summary = Item::message(crate::protocol::Role::System, "what came before");
                history.push(Kept::new(None, summary));
                self.append(&[begin]);
            }
            Step::Fold => drop(self.fold().keep_now()),
        }
    }

    fn turn(&mut self, id: &str, tool: &str, output: usize) {
        let output = format!("{id} {}", "\"\n日".repeat(output / 5));
        let run = [user("look"), call(id, tool), result(id, &output), said("seen"), completed()];
        self.append(&[invoke()]);
        self.append(&run);
    }

    /// A fold that makes a checkpoint whenever it can.
    fn fold(&self) -> Fold {
        fold_with(&self.bench.files, self.bench.segment, 2 * LONG as u64, 1).unwrap()
    }

    fn forget(&self) {
        std::fs::remove_file(self.bench.files.fold(self.bench.segment)).unwrap();
    }

    fn length(&self) -> u64 {
        self.bench.path().metadata().unwrap().len()
    }
}

/// A fold with the outputs that were left in the log, as [`replay`] gives it.
fn whole(growing: &Growing, mut replay: Replay) -> Replay {
    for kept in replay.history.iter_mut().map(std::sync::Arc::make_mut) {
        load_output(&growing.bench.files, kept).unwrap();
        kept.output = None;
    }
    replay
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_fold_from_a_checkpoint_is_the_fold_of_the_whole_log(
        steps in steps(),
        two_threads in any::<bool>(),
    ) {
        let mut growing =
            if two_threads { Growing::read_by_two_threads() } else { Growing::new() };
        for step in &steps {
            growing.play(step);
            let path = growing.bench.files.fold(growing.bench.segment);
            let checkpoint = std::fs::read(&path).ok();
            let from_checkpoint = growing.fold().replay;
            if checkpoint.is_some() {
                std::fs::remove_file(&path).unwrap();
            }
            prop_assert_eq!(&from_checkpoint, &growing.fold().replay);
            if let Some(checkpoint) = checkpoint {
                std::fs::write(&path, checkpoint).unwrap();
            }
            let files = growing.bench.files_of_another_program();
            let expected = replay(&files, growing.bench.segment, None).unwrap();
            prop_assert_eq!(whole(&growing, from_checkpoint), expected);
        }
    }
}

/// A log with a checkpoint in its middle, and how long it was then.
fn with_checkpoint() -> (Growing, u64) {
    let mut growing = Growing::new();
    for _ in 0..12 {
        growing.play(&Step::Turn { output: LONG });
    }
    growing.play(&Step::Fold);
    let covered = growing.length();
    growing.play(&Step::Turn { output: 9 });
    (growing, covered)
}

#[test]
fn what_a_checkpoint_covers_is_not_read_again() {
    let (growing, covered) = with_checkpoint();
    let expected = growing.fold().replay;
    let mut log = growing.bench.content();
    let middle = usize::try_from(covered / 2).unwrap();
    log[middle - 40_000..middle].fill(b'x');
    std::fs::write(growing.bench.path(), &log).unwrap();
    let found = growing.fold();
    assert_eq!(found.read, log.len() as u64 - covered);
    assert_eq!(found.replay, expected);
    growing.forget();
    assert!(!growing.fold().replay.damaged.is_empty(), "the whole log is read");
}

#[test]
fn an_output_that_was_damaged_below_a_checkpoint_is_left_out() {
    let (growing, covered) = with_checkpoint();
    let mut log = growing.bench.content();
    let middle = usize::try_from(covered / 2).unwrap();
    log[middle - 40_000..middle].fill(b'x');
    std::fs::write(growing.bench.path(), &log).unwrap();
    // Every output is read again.
    let found = fold(&growing.bench.files, growing.bench.segment, u64::MAX).unwrap();
    assert_eq!(found.read, log.len() as u64, "the whole log is read");
    assert!(!found.replay.damaged.is_empty());
}

#[test]
fn a_checkpoint_that_does_not_fit_is_not_used() {
    let (growing, covered) = with_checkpoint();
    let path = growing.bench.files.fold(growing.bench.segment);
    let good = std::fs::read(&path).unwrap();
    let log = growing.bench.content();
    let text = String::from_utf8(good.clone()).unwrap();
    let other = SegmentId::new().to_string();
    let of = growing.bench.segment.to_string();
    let damaged = [
        Vec::new(),
        good[..good.len() / 2].to_vec(),
        text.replace("look", "l00k").into_bytes(),
        text.replacen("\"version\":2", "\"version\":1", 1).into_bytes(),
        text.replacen(&of, &other, 1).into_bytes(),
        text.replacen(&format!("\"end\":{covered}"), &format!("\"end\":{}", covered - 1), 1).into(),
        b"{}\n{}".to_vec(),
    ];
    for (case, content) in damaged.into_iter().enumerate() {
        assert_ne!(content, good, "case {case}");
        std::fs::write(&path, content).unwrap();
        assert_eq!(growing.fold().read, log.len() as u64, "case {case}");
    }
    std::fs::write(&path, &good).unwrap();
    let end = usize::try_from(covered).unwrap();
    let mut changed = log.clone();
    changed[end - 10] ^= 1;
    let mut begun_anew = log.clone();
    begun_anew[10] ^= 1;
    for log in [&changed, &begun_anew, &log[..end - 1].to_vec(), &log[..end / 2].to_vec()] {
        std::fs::write(growing.bench.path(), log).unwrap();
        let found = growing.fold();
        assert_eq!(found.read, found.replay.end, "the whole log is read");
    }
}

#[test]
fn after_a_rewind_to_before_its_end_a_checkpoint_is_not_used() {
    for behind in [false, true] {
        let (mut growing, covered) = with_checkpoint();
        let is_behind = |at: &&LogPosition| (at.offset >= covered) == behind && at.offset > 0;
        let to = *growing.at.iter().rfind(is_behind).unwrap();
        growing.append(&[Jump::entry(JumpKind::Rewound, to, json!({}))]);
        let from = if behind { covered } else { 0 };
        assert_eq!(growing.fold().read, growing.length() - from);
    }
}

#[test]
fn a_small_log_gets_no_checkpoint() {
    let (growing, _) = with_checkpoint();
    growing.forget();
    fold(&growing.bench.files, growing.bench.segment, 0).unwrap().keep_now();
    assert!(!growing.bench.files.fold(growing.bench.segment).exists());
}

#[test]
fn only_the_newest_long_outputs_are_held_in_memory() {
    let (growing, _) = with_checkpoint();
    for _ in 0..2 {
        let found = growing.fold().replay;
        let held: Vec<bool> = found
            .history
            .iter()
            .filter(|kept| kept.output.is_some())
            .map(|kept| !kept.is_left())
            .collect();
        let mut expected = [false; 12];
        expected[10..].fill(true);
        assert_eq!(held, expected);
        growing.forget();
        std::fs::write(growing.bench.files.fold(growing.bench.segment), "").unwrap();
    }
}

#[test]
fn a_long_output_is_passed_over_without_a_json_reader() {
    let mut long = result("c1", &"\"\n\u{1b}[1m日\\ ".repeat(LONG));
    let line = lines(std::slice::from_ref(&long));
    let (short, bytes) = outputs::without_content(line.trim_ascii_end()).unwrap();
    let Fact::ToolResult { item: Item::ToolResult { content, .. }, .. } = &mut long.fact else {
        unreachable!()
    };
    assert_eq!(bytes, content.as_ref().unwrap().len() as u64);
    *content = Some(String::new());
    assert_eq!(
        String::from_utf8(short).unwrap() + "\n",
        String::from_utf8(lines(&[long])).unwrap()
    );
}

#[test]
fn jumps_that_were_found_are_those_of_the_file_that_is_there() {
    let (mut growing, _) = with_checkpoint();
    let found = |growing: &Growing| {
        let [known, new] = [&growing.bench.files, &growing.bench.files_of_another_program()]
            .map(|files| stretches(files, growing.bench.segment, None).unwrap());
        assert_eq!(known, new);
        known.len()
    };
    assert_eq!(found(&growing), 1);
    let (to, without) = (growing.at[20], growing.bench.content());
    growing.append(&[Jump::entry(JumpKind::Rewound, to, json!({}))]);
    assert_eq!(found(&growing), 2);
    let with = growing.bench.content();
    std::fs::write(growing.bench.path(), &without).unwrap();
    assert_eq!(found(&growing), 1, "the file was cut");
    std::fs::write(growing.bench.path(), [&with[..], b"{\"torn\":"].concat()).unwrap();
    assert_eq!(found(&growing), 2);
    let other = growing.bench.path().with_extension("new");
    std::fs::write(&other, [&without[..], &without[..]].concat()).unwrap();
    std::fs::rename(other, growing.bench.path()).unwrap();
    assert_eq!(found(&growing), 1, "another file is in its place");
}

/// How many bytes this thread has read from files.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn the_search_for_jumps_finds_where_old_rollbacks_lead() {
    let mut growing = Growing::new();
    for turn in 0..40 {
        growing.turn(&format!("c{turn}"), "Read", 9);
        let run = [invoke(), user("go"), call("r", "Read"), result("r", &"x".repeat(3 * LONG))];
        growing.append(&run);
        growing.append(&[rolled_back(&run[0])]);
    }
    let Growing { bench, .. } = &growing;
    let of = |files| stretches(files, bench.segment, None).unwrap();
    let (length, before) = (growing.length(), bytes_read());
    let found = of(&bench.files);
    let read = bytes_read() - before;
    assert_eq!(found.len(), 41);
    assert!(read < length + length / 4, "{read} of {length} bytes were read");
    assert_eq!(of(&bench.files), found);
    let read = bytes_read() - before - read;
    assert!(read < length / 4, "{read} of {length} bytes were read again");
}

#[test]
fn a_fold_reads_no_output_twice_and_none_that_was_taken_back() {
    let mut growing = Growing::new();
    for turn in 0..20 {
        growing.turn(&format!("c{turn}"), "Read", LONG);
        let run = [invoke(), user("go"), call("r", "Read"), result("r", &"x".repeat(6 * LONG))];
        growing.append(&run);
        growing.append(&[rolled_back(&run[0])]);
    }
    let before = bytes_read();
    stretches(&growing.bench.files, growing.bench.segment, None).unwrap();
    let (searched, length) = (bytes_read() - before, growing.length());
    assert!(searched < length + length / 10, "{searched} of {length} bytes were searched");
    let found = fold(&growing.bench.files, growing.bench.segment, 0).unwrap().replay;
    let (read, standing) = (bytes_read() - before - searched, 20 * LONG as u64 * 7 / 5);
    assert_eq!((found.history.len(), found.entries), (80, 20 * 11 + 1));
    assert!(read < standing + length / 10, "{read} of {length} bytes were folded");
}

#[test]
fn two_threads_share_the_outputs_of_a_log_with_many_rollbacks() {
    let mut growing = Growing::new();
    for turn in 0..40 {
        growing.turn(&format!("c{turn}"), "Read", LONG);
        growing.play(&Step::RolledBack);
    }
    let Growing { bench, .. } = &growing;
    let read = |two_threads_from| {
        let files = bench.files_of_another_program().with_two_threads_from(two_threads_from);
        stretches(&files, bench.segment, None).unwrap();
        let before = bytes_read();
        let found = fold(&files, bench.segment, 0).unwrap().replay;
        (found, bytes_read() - before)
    };
    let (one, all) = read(u64::MAX);
    let (two, half) = read(growing.length() / 4);
    assert_eq!(one, two);
    assert!(half < all * 2 / 3, "this thread read {half} of {all} bytes");
}

#[test]
fn an_old_rollback_goes_back_over_lines_of_any_number_and_form() {
    let mut growing = Growing::new();
    growing.turn("c1", "Read", 9);
    let starts = [
        // A short run, one of more lines than are known by their ids, and one with a line of another
        // program.
        (invoke(), 1, None),
        (invoke(), 1500, None),
        (invoke(), 1, Some(&b"{\"kind\":\"foreign\"}\n"[..])),
    ];
    for (first, more, foreign) in starts {
        growing.append(std::slice::from_ref(&first));
        let to = growing.at.last().unwrap().offset;
        for _ in 0..more {
            growing.append(&[notified("news")]);
        }
        foreign.into_iter().for_each(|line| growing.line(line));
        growing.append(&[rolled_back(&first)]);
        let found = stretches(&growing.bench.files, growing.bench.segment, None).unwrap();
        assert_eq!(found[found.len() - 2].range.end, to);
    }
    let other = growing.bench.files_of_another_program();
    let [known, new] = [&growing.bench.files, &other]
        .map(|files| stretches(files, growing.bench.segment, None).unwrap());
    assert_eq!(known, new);
}

#[test]
fn a_log_is_not_searched_for_its_jumps_again() {
    let (mut growing, _) = with_checkpoint();
    growing.append(&[Jump::entry(JumpKind::Rewound, growing.at[60], json!({}))]);
    for _ in 0..60 {
        growing.play(&Step::Turn { output: 3 * LONG });
    }
    let Growing { bench, .. } = &growing;
    let targets = || rewind_targets(&bench.files, bench.segment, None).unwrap().targets;
    let first = targets();
    let before = bytes_read();
    assert_eq!(targets().len(), first.len());
    let (read, length) = (bytes_read() - before, growing.length());
    assert!(read < length / 4, "{read} of {length} bytes were read");
}
