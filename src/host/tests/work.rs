//! What runs did, in the entries that end them and in sums over a time.

use crate::host::tests::Bench;
use crate::protocol::{
    CircleKind, Event, Fact, LinesChanged, Method, PodName, PodWork, RunResult, State, Work,
};

const SCRIPT: &str = r#"
[[when]]
says = "write *"
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/{1}.txt", content = "one\ntwo\nthree\n" } }]
[[when.step]]
call = [
    { name = "Edit", args = { file_path = "{cwd}/{1}.txt", old_string = "two", new_string = "2" } },
    { name = "TaskCreate", args = { subject = "CHANGELOG", description = "say it" } },
]
[[when.step]]
text = "First.\n\nWrote {1}.\n"
usage = { input = 10, output = 5 }

[[when]]
says = "break"
[[when.step]]
call = [{ name = "Edit", args = { file_path = "{cwd}/none.txt", old_string = "a", new_string = "b" } }]
[[when.step]]
text = "It broke."

[[when]]
says = "circles"
[[when.step]]
call = [{ name = "Edit", args = { file_path = "{cwd}/none.txt", old_string = "a", new_string = "b" } }]
[[when.step]]
call = [{ name = "Edit", args = { file_path = "{cwd}/none.txt", old_string = "a", new_string = "b" } }]
[[when.step]]
call = [{ name = "Edit", args = { file_path = "{cwd}/none.txt", old_string = "a", new_string = "b" } }]
[[when.step]]
text = "Half."
fault = { hang = 6, times = 9 }

[[when]]
says = "denied"
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/never.txt", content = "x" } }]
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/never.txt", content = "x" } }]
[[when.step]]
text = "Half."
fault = { hang = 6, times = 9 }

[[when]]
any = true
text = "You said {1}."
"#;

/// Lower numbers than those of the defaults.
const WATCH: &str = r#"
[watch]
same_failures = 3
same_requests = 2

[[permissions.rule]]
tool = "Write"
pattern = "*/never.txt"
action = "deny"
"#;

impl Bench {
    async fn work_since(&mut self, at: u64) -> Vec<PodWork> {
        match self.client.call(None, Method::Since { at }).await {
            Ok(Event::Since { pods }) => pods,
            other => panic!("{other:?}"),
        }
    }

    /// What the entry says that ended the last run.
    async fn last_work(&self, pod: &PodName) -> Work {
        let end = self.facts(pod).await.into_iter().rev().find_map(|fact| match fact {
            Fact::RunCompleted { work, .. } | Fact::RunErrored { work, .. } => Some(work),
            _ => None,
        });
        end.flatten().map(|work| *work).unwrap_or_default()
    }
}

#[tokio::test]
async fn the_end_of_a_run_says_what_it_did_and_sums_are_made_of_that() {
    let mut bench = Bench::new().await;
    let script = bench.root.join("script.toml");
    std::fs::write(&script, SCRIPT).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    assert_eq!(bench.work_since(0).await, []);

    bench.call(&pod, Method::say("write a")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let first = bench.last_work(&pod).await;
    let file = bench.root.join("w/a.txt").canonicalize().unwrap().display().to_string();
    let mut expected = Work {
        files: [file.clone()].into(),
        lines: LinesChanged { added: 4, removed: 1 },
        by_walls: 2,
        cost_unknown: true,
        tasks_not_begun: 1,
        subjects: vec!["CHANGELOG".into()],
        ..Work::default()
    };
    assert_eq!(first, expected);
    expected.report = Some("Wrote a.".into());
    let [one] = &bench.work_since(0).await[..] else { panic!("one Pod") };
    assert_eq!((&one.pod, one.runs, &one.work), (&pod, 1, &expected));

    bench.call(&pod, Method::say("break")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let second = bench.last_work(&pod).await;
    assert_eq!((second.files.len(), second.by_walls), (0, 1), "what fails changes nothing");
    let [both] = &bench.work_since(0).await[..] else { panic!("one Pod") };
    assert_eq!((both.runs, both.work.by_walls, both.work.lines.added), (2, 3, 4));
    assert_eq!(both.work.report.as_deref(), Some("It broke."), "the newest report stands");
    let at = both.last.at;
    let newest = bench.work_since(at).await;
    assert_eq!(newest[0].work.files.len(), 0, "{newest:?}");
    assert_eq!(bench.work_since(at + 1).await, []);
}

#[tokio::test]
async fn a_run_in_circles_is_shown_so_from_the_number_of_the_settings_on_until_it_ends() {
    let mut bench = Bench::with_settings(WATCH).await;
    let script = bench.root.join("script.toml");
    std::fs::write(&script, SCRIPT).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    for (message, kind, times, tool) in
        [("circles", CircleKind::Failure, 3, "Edit"), ("denied", CircleKind::Denied, 2, "Write")]
    {
        bench.call(&pod, Method::say(message)).await.unwrap();
        let circling = loop {
            let event = bench.next(|event| matches!(event, Event::PodChanged { .. })).await;
            let Event::PodChanged { info } = event else { unreachable!() };
            if let Some(circling) = info.circling {
                break circling;
            }
        };
        assert_eq!((circling.kind, circling.times), (kind, times));
        assert!(circling.call.starts_with(tool), "{circling:?}");
        bench.call(&pod, Method::Cancel).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Cancelled);
        assert_eq!(bench.is(&pod, State::Idle).await.circling, None);
    }
}
