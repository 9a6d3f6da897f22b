//! Leaders that come, go, stop and are displaced: at every end there is one mesh.

use crate::disk::FileId;
use crate::mesh::member::{Inbox, Received, Standing};
use crate::mesh::tests::bench::{Bench, message, say, soon};
use crate::mesh::{Member, Status, join};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use tokio::task::JoinSet;

/// The names of the mesh as each member sees them, once all see the same `count` of them.
async fn agreed(members: &[(Member, Inbox)], count: usize) {
    let agree = async {
        loop {
            let mut alike = true;
            for (member, _) in members {
                let peers = member.peers().await.unwrap_or_default();
                alike &= peers.len() == count - 1;
            }
            if alike {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    soon("one mesh", agree).await;
}

fn leaders(members: &[(Member, Inbox)]) -> usize {
    members.iter().filter(|(member, _)| member.standing().leading).count()
}

async fn rejoined(inbox: &mut Inbox) -> Standing {
    loop {
        if let Received::Rejoined(standing) = soon("joining again", inbox.next()).await.unwrap() {
            return standing;
        }
    }
}

#[tokio::test]
async fn of_many_that_start_at_once_one_leads_also_on_the_socket_of_a_crash() {
    for stale in [false, true] {
        let bench = Bench::new();
        if stale {
            std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
            drop(std::os::unix::net::UnixListener::bind(bench.path()).unwrap());
        }
        let mut joining = JoinSet::new();
        for number in 0..16 {
            joining.spawn(join(bench.options(&format!("m{number}"))));
        }
        let members: Vec<_> = joining.join_all().await.into_iter().map(Result::unwrap).collect();
        assert_eq!(leaders(&members), 1);
        agreed(&members, 16).await;
    }
}

#[tokio::test]
async fn the_socket_is_private_and_goes_with_its_leader() {
    let bench = Bench::new();
    let (member, _inbox) = bench.member("alice").await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&bench.path()), mode(bench.path().parent().unwrap())), (0o600, 0o700));
    let sockets = |bench: &Bench| {
        let entries = std::fs::read_dir(bench.path().parent().unwrap()).unwrap().flatten();
        entries.filter(|entry| entry.file_type().unwrap().is_socket()).count()
    };
    assert_eq!(sockets(&bench), 1);
    member.leave().await;
    assert_eq!(sockets(&bench), 0);
}

#[tokio::test]
async fn a_leader_that_leaves_is_followed_by_one_of_the_others() {
    let bench = Bench::new();
    let mut members = Vec::new();
    for number in 0..6 {
        members.push(bench.member(&format!("m{number}")).await);
    }
    while members.len() > 1 {
        let at = members.iter().position(|(member, _)| member.standing().leading).unwrap();
        let (leader, _) = members.remove(at);
        leader.leave().await;
        for (_, inbox) in &mut members {
            rejoined(inbox).await;
        }
        agreed(&members, members.len()).await;
        assert_eq!(leaders(&members), 1);
    }
}

#[tokio::test]
async fn a_leader_whose_path_leads_elsewhere_joins_there_with_its_members() {
    let bench = Bench::new();
    let mut members = Vec::new();
    for number in 0..3 {
        members.push(bench.member(&format!("m{number}")).await);
    }
    // What an agent of another program does that saw the socket of a dead leader a moment before.
    std::fs::remove_file(bench.path()).unwrap();
    for (_, inbox) in &mut members {
        rejoined(inbox).await;
    }
    agreed(&members, 3).await;
    assert_eq!(leaders(&members), 1);
}

#[tokio::test]
async fn a_follower_moves_to_the_leader_that_took_the_path() {
    let bench = Bench::new();
    let other = Bench::new();
    let (first, _inbox) = bench.member("first").await;
    let (_second, mut seconds) = bench.member("second").await;
    let (third, _thirds) = other.member("third").await;
    std::fs::rename(other.path(), bench.path()).unwrap();
    let standing = rejoined(&mut seconds).await;
    // The former leader joins too; the socket of the third is where it never was made, so that one moves as well.
    assert!(!standing.name.is_empty() && first.standing().name == "first");
    drop(third);
}

#[tokio::test]
async fn only_the_own_socket_is_removed_on_leaving() {
    let bench = Bench::new();
    let (member, _inbox) = bench.member("alice").await;
    std::fs::remove_file(bench.path()).unwrap();
    let other = std::os::unix::net::UnixListener::bind(bench.path()).unwrap();
    let there = FileId::at_link(&bench.path()).unwrap();
    member.leave().await;
    assert_eq!(FileId::at_link(&bench.path()).unwrap(), there);
    drop(other);
}

#[tokio::test]
async fn a_path_that_is_no_socket_or_that_others_can_change_is_refused_with_a_sentence() {
    let bench = Bench::new();
    let dir = bench.path().parent().unwrap().to_owned();
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(bench.path(), "text").unwrap();
    let error = join(bench.options("alice")).await.unwrap_err().to_string();
    assert!(error.contains("is not a socket: remove it"), "{error}");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = join(bench.options("alice")).await.unwrap_err().to_string();
    assert!(error.contains("chmod go-w"), "{error}");
}

#[tokio::test]
async fn a_process_that_does_not_lead_says_that_there_is_no_leader() {
    let bench = Bench::new();
    let options = crate::mesh::Options { leads: false, ..bench.options("alice") };
    let error = join(options).await.unwrap_err().to_string();
    assert!(error.contains("no agent leads a mesh at"), "{error}");
}

#[tokio::test]
async fn what_was_acknowledged_before_the_leader_left_arrives() {
    let bench = Bench::new();
    let (leader, _inbox) = bench.member("leader").await;
    let (alice, _alices) = bench.member("alice").await;
    let (_bob, mut bobs) = bench.member("bob").await;
    let sending = async {
        let mut acknowledged = Vec::new();
        for number in 0..2000 {
            if say(&alice, "bob", &number.to_string()).await.status == Status::Received {
                acknowledged.push(format!("\"{number}\""));
            }
        }
        let end = say(&alice, "bob", "end").await;
        assert_eq!(end.status, Status::Received);
        acknowledged
    };
    let mut leader = Some(leader);
    let taking = async {
        let mut arrived = Vec::new();
        loop {
            let text = message(&mut bobs).await.body.get().to_owned();
            if text == "\"end\"" {
                return arrived;
            }
            arrived.push(text);
            if arrived.len() == 500
                && let Some(leader) = leader.take()
            {
                leader.leave().await;
            }
        }
    };
    let (acknowledged, mut arrived) = tokio::join!(sending, taking);
    assert!(acknowledged.len() > 1900, "{}", acknowledged.len());
    arrived.retain(|text| acknowledged.contains(text));
    assert_eq!(arrived, acknowledged);
}
