//! `:rm` with options that select Pods: `--stopped`, `--older-than`, `--all`.

use super::*;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// The first step of a line among Pods of two workspaces, with the names of the Pods that it asks about.
fn deletion(line: &str) -> Result<(String, Vec<String>), Said> {
    use crate::screen::app::tests::{NOON, pod as info};
    let mut pods = vec![info("live", State::Idle), info("damaged", State::Damaged)];
    for (name, state_days, active_days) in
        [("today", 0, 0), ("used", 9, 2), ("week", 8, 8), ("old", 30, 40)]
    {
        let mut pod = info(name, State::Stopped);
        (pod.since, pod.last_activity) = (NOON - state_days * DAY, NOON - active_days * DAY);
        pods.push(pod);
    }
    let mut elsewhere = info("elsewhere", State::Stopped);
    (elsewhere.workspace, elsewhere.since) = ("/other".into(), NOON - 50 * DAY);
    elsewhere.last_activity = elsewhere.since;
    pods.push(elsewhere);
    let mut family = Family::default();
    family.replace(pods, Vec::new(), Vec::new());
    let (env, cwd) = (BTreeMap::new(), Path::new("/repo/ui"));
    let known = Known { cwd, now: NOON, ..known_in(&family, &env, Way::Line) };
    let mut dialogue = read(line, Way::Line).unwrap_or_else(|why| panic!("{line}: {why}")).dialogue;
    let Confirm { question, about, .. } = match dialogue.next(&known, None) {
        Next::Confirm(confirm) => confirm,
        Next::End(end) => return Err(end.said),
        other => panic!("{line}: {other:?}"),
    };
    let Next::Call(requests) = dialogue.next(&known, Some(Reply::Confirmed)) else {
        panic!("{line}: nothing is deleted")
    };
    let to_each = about.iter().map(|pod| Request::to(pod.clone(), Method::Remove));
    assert_eq!(requests, to_each.collect::<Vec<_>>(), "{line}");
    Ok((question, about.iter().map(PodName::to_string).collect()))
}

#[test]
fn stopped_pods_of_this_workspace_are_deleted_by_age_after_they_were_counted() {
    for (line, pods, question) in [
        (
            "rm --stopped",
            &["today", "used", "week", "old"] as &[&str],
            "delete 4 stopped Pods (today, used, week, old; the oldest last active 30 d ago) and their \
             transcripts for good?",
        ),
        (
            "rm --older-than 1w",
            &["week", "old"],
            "delete 2 stopped Pods (week, old; the oldest last active 30 d ago) and their transcripts for \
             good?",
        ),
        (
            "rm --stopped --older-than 240h",
            &["old"],
            "delete old (last active 30 d ago) and its transcript for good?",
        ),
        (
            "rm --older-than 14d --all",
            &["old", "elsewhere"],
            "delete 2 stopped Pods (old, elsewhere; the oldest last active 50 d ago) and their \
             transcripts for good?",
        ),
    ] {
        let (asked, about) = deletion(line).unwrap_or_else(|said| panic!("{line}: {said:?}"));
        assert_eq!(
            (asked.as_str(), about),
            (question, pods.iter().map(|p| p.to_string()).collect())
        );
    }
    let none = "nothing to delete: there is no stopped Pod in this workspace that was last active more \
                than 70 d ago";
    assert_eq!(deletion("rm --older-than 10w"), Err(Said::Info(none.into())));
    let alone = "--all alone names no Pod: :rm --stopped --all deletes every stopped one";
    assert_eq!(deletion("rm --all"), Err(Said::Refused(Why::Usage, alone.into())));
}

#[test]
fn a_pod_that_does_not_exist_is_refused_before_anything_is_asked() {
    let refused = deletion("rm nosuch");
    let text = "there is no pod `nosuch`: the tree shows those there are";
    assert_eq!(refused, Err(Said::Refused(Why::NotThere, text.into())));
    assert!(deletion("rm damaged").is_ok(), "what cannot be read can be deleted");
}

#[test]
fn a_deletion_names_six_pods_and_counts_the_others() {
    let names: Vec<String> = (1..=9).map(|n| format!("p{n}")).collect();
    let states: Vec<_> = names.iter().map(|name| (name.as_str(), State::Stopped)).collect();
    let results = Reply::Results(vec![Ok(yoi::protocol::Event::Lagged); 9]);
    let end = driven("rm --stopped", Way::Shell, &states, vec![Reply::Confirmed, results]);
    let said = "deleted 9 Pods: p1, p2, p3, p4, p5, p6 and 3 more";
    assert_eq!(end.said, Said::Done(said.into()));
}

#[test]
fn children_are_deleted_before_their_parents_because_they_may_work_in_the_tree_of_one() {
    use crate::screen::app::tests::pod as info;
    let below = |parent: &str, name: &str| {
        let parent = PodName::parse(parent).ok();
        yoi::protocol::PodInfo { parent, ..info(name, State::Stopped) }
    };
    let mut family = Family::default();
    let pods = vec![
        info("top", State::Stopped),
        below("top", "mid"),
        info("other", State::Stopped),
        below("mid", "low"),
    ];
    family.replace(pods, Vec::new(), Vec::new());
    let env = BTreeMap::new();
    let known = known_in(&family, &env, Way::Line);
    let mut dialogue = read("rm top low other mid", Way::Line).expect("a line").dialogue;
    let Next::Confirm(_) = dialogue.next(&known, None) else { panic!("no question") };
    let mut last = Reply::Confirmed;
    for pods in [&["low"] as &[&str], &["mid"], &["top", "other"]] {
        let Next::Call(requests) = dialogue.next(&known, Some(last)) else { panic!("{pods:?}") };
        let name = |pod: &&str| PodName::parse(pod).expect("a name");
        let removes = pods.iter().map(|pod| Request::to(name(pod), Method::Remove));
        assert_eq!(requests, removes.collect::<Vec<_>>());
        last = Reply::Results(vec![Ok(yoi::protocol::Event::done()); pods.len()]);
    }
    let Next::End(end) = dialogue.next(&known, Some(last)) else { panic!("it goes on") };
    assert_eq!(end.said, Said::Done("deleted low, mid, top, other".into()));
}

#[test]
fn a_deletion_by_age_takes_a_number_with_a_unit_and_no_names() {
    for (line, said) in [
        (":rm", "usage: :rm [pod …] [--stopped] [--older-than time] [--all]"),
        (":rm --older-than 7", "`7` is no time: a number with m, h, d or w is, such as 12h or 7d"),
        (
            ":rm --older-than 99999999999999999999d",
            "`99999999999999999999d` is no time: a number with m, h, d or w is, such as 12h or 7d",
        ),
        (":rm a --stopped", ":rm: [pod]... and --stopped exclude each other"),
    ] {
        assert_eq!(read(line, Way::Line).err().as_deref(), Some(said), "{line}");
    }
}
