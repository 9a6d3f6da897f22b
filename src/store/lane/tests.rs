use crate::store::StoreError;
use crate::store::lane::{Failure, Lane};
use futures_util::future::join_all;
use rusqlite::Connection;
use std::path::Path;
use tokio::sync::oneshot;

fn lane(sql: &str) -> Lane {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE numbers (number INTEGER NOT NULL)").unwrap();
    connection.execute_batch(sql).unwrap();
    Lane::start("lane", Path::new("/db"), connection).unwrap()
}

/// Makes the thread wait until the sender is dropped, so that what comes meanwhile is one transaction.
async fn hold(lane: &Lane) -> oneshot::Sender<()> {
    let (begun, has_begun) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let lane = lane.clone();
    tokio::spawn(async move {
        let wait = move |_: &Connection| {
            begun.send(()).unwrap();
            Ok(released.blocking_recv().is_err())
        };
        lane.run("hold", wait).await
    });
    has_begun.await.unwrap();
    release
}

fn add(db: &Connection, number: i64) -> Result<(), Failure> {
    db.execute("INSERT INTO numbers VALUES (?1)", [number])?;
    match number {
        // What SQLite does by itself where the disk is full.
        5 => db.execute_batch("ROLLBACK; INSERT INTO nowhere VALUES (1)")?,
        3 => return Err(StoreError::NotAsked.into()),
        _ => {}
    }
    Ok(())
}

/// The outcome of each number, added at the same time, and the numbers that are there then.
async fn added(lane: &Lane, numbers: &[i64]) -> (Vec<bool>, Vec<i64>) {
    let release = hold(lane).await;
    let mut adding = Box::pin(join_all(
        numbers.iter().map(|&number| lane.run("add to", move |db| add(db, number))),
    ));
    assert!(futures_util::poll!(&mut adding).is_pending());
    drop(release);
    let outcomes = adding.await.iter().map(Result::is_ok).collect();
    let read = |db: &Connection| {
        let mut statement = db.prepare("SELECT number FROM numbers ORDER BY rowid")?;
        let numbers = statement.query_map([], |row| row.get(0))?;
        Ok(numbers.collect::<Result<_, _>>()?)
    };
    (outcomes, lane.run("read", read).await.unwrap())
}

#[tokio::test]
async fn work_that_is_refused_takes_nothing_of_its_transaction_along() {
    let lane = lane("");
    let (outcomes, there) = added(&lane, &[3, 1, 3, 2]).await;
    assert_eq!((outcomes, there), (vec![false, true, false, true], vec![1, 2]));
}

#[tokio::test]
async fn where_a_transaction_ends_early_its_work_is_refused_and_the_rest_is_done() {
    let lane = lane("");
    let (outcomes, there) = added(&lane, &[5, 1, 4, 5, 2]).await;
    assert_eq!((outcomes, there), (vec![false, false, false, false, true], vec![2]));
}

#[tokio::test]
async fn a_commit_that_fails_refuses_all_that_it_would_have_kept() {
    let lane = lane(
        "PRAGMA foreign_keys = ON;
        CREATE TABLE others (number INTEGER PRIMARY KEY);
        DROP TABLE numbers;
        CREATE TABLE numbers (number INTEGER NOT NULL REFERENCES others DEFERRABLE INITIALLY DEFERRED)",
    );
    let (outcomes, there) = added(&lane, &[1, 2]).await;
    assert_eq!((outcomes, there), (vec![false, false], vec![]));
}

#[tokio::test]
async fn a_lane_closes_behind_the_work_that_waits() {
    let lane = lane("");
    let release = hold(&lane).await;
    let mut adding = Box::pin(lane.run("add to", |db| add(db, 1)));
    assert!(futures_util::poll!(&mut adding).is_pending());
    let mut closing = Box::pin(lane.close());
    assert!(futures_util::poll!(&mut closing).is_pending());
    let mut late = Box::pin(lane.run("add to", |db| add(db, 2)));
    assert!(futures_util::poll!(&mut late).is_pending());
    drop(release);
    adding.await.unwrap();
    closing.await;
    assert!(matches!(late.await, Err(StoreError::Closed)));
}
