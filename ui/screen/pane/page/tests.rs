use super::*;
use yoi::protocol::{EntryId, PodName};

fn rows(targets: &[Option<&str>]) -> Vec<PageRow> {
    let target = |name: &str| Target::Entry(PodName::parse(name).expect("a name"), EntryId::new());
    let row = |name: &Option<&str>| PageRow { target: name.map(target), ..PageRow::default() };
    targets.iter().map(row).collect()
}

#[test]
fn the_cursor_goes_from_target_to_target_and_the_rows_above_the_first_come_into_view_with_it() {
    let rows = rows(&[None, Some("a"), None, None, Some("b"), Some("c"), None]);
    let mut place = Place::default();
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(1), 0));
    place.step(&rows, 1, 3);
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(4), 2));
    place.step(&rows, 1, 3);
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(5), 3));
    place.step(&rows, 1, 3);
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(5), 4), "the rest is read");
    place.first(&rows);
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(1), 0));
    place.last(&rows, 3);
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(5), 4));
    place.step(&rows, -2, 3);
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(1), 0));
}

#[test]
fn the_cursor_follows_its_target_when_rows_come_and_go_and_stays_near_when_it_is_gone() {
    let mut rows = rows(&[Some("a"), Some("b"), Some("c")]);
    let mut place = Place::default();
    place.step(&rows, 1, 9);
    rows.insert(0, PageRow::default());
    assert_eq!(place.cursor(&rows), Some(2));
    rows.remove(2);
    assert_eq!(place.cursor(&rows), Some(1));
    assert_eq!(place.cursor(&rows[..1]), None);
}

#[test]
fn scrolling_takes_the_cursor_along_and_a_page_without_targets_only_scrolls() {
    let mut place = Place::default();
    let read = rows(&[None; 9]);
    place.step(&read, 1, 4);
    assert_eq!((place.cursor(&read), place.top(&read, 4)), (None, 1));
    place.scroll(&read, 99, 4);
    assert_eq!(place.top(&read, 4), 5);
    let rows = rows(&[Some("a"), Some("b"), Some("c"), Some("d"), Some("e")]);
    let mut place = Place::default();
    place.scroll(&rows, 2, 3);
    assert_eq!((place.cursor(&rows), place.top(&rows, 3)), (Some(2), 2));
    place.scroll(&rows, -2, 2);
    assert_eq!((place.cursor(&rows), place.top(&rows, 2)), (Some(1), 0));
    place.click(&rows, 0, 2);
    assert_eq!(place.cursor(&rows), Some(0));
}
