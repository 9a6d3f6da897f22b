//! The words of a verb that say which Pods are meant: names, and selectors, which are a state as in `@idle` or a part
//! of the tree as in `alice/**`. They are resolved once: a confirmation names the Pods that were found, and the verb acts
//! on no others.

use crate::verb::{End, Known, Why};
use crate::wording::state;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use yoi::client::family::Family;
use yoi::protocol::{PodInfo, PodName};
use yoi::text::SafeText;

/// The most Pods that a message names; a confirmation names all.
const NAMED: usize = 6;

/// Above this many Pods a confirmation also says how many there are.
const COUNTED: usize = 3;

/// The state that stands for every Pod that waits for a person.
const NEEDS: &str = "needs";
/// The states that a selector can name: [`NEEDS`], and words of [`state::of_pod`], which the tree and `yoi ls` show.
const STATES: [&str; 6] = [NEEDS, "failed", "idle", "running", "paused", "done"];

/// One word of a line that says which Pods are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Pod(PodName),
    /// `@idle`: every Pod in this state.
    State(&'static str),
    /// `alice/**`: a Pod and everything below it.
    Tree(PodName),
    /// `alice/*`: the children of a Pod.
    Children(PodName),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = |text: &str| PodName::parse(text).map_err(|error| error.to_string());
        if let Some(word) = text.strip_prefix('@') {
            let state = STATES.into_iter().find(|state| *state == word);
            return state.map(Self::State).ok_or_else(|| unknown(text));
        }
        if let Some(parent) = text.strip_suffix("/**") {
            return name(parent).map(Self::Tree);
        }
        match text.strip_suffix("/*") {
            Some(parent) => name(parent).map(Self::Children),
            None => name(text).map(Self::Pod),
        }
    }
}

fn unknown(text: &str) -> String {
    let states = STATES.map(|state| format!("@{state}")).join(", ");
    format!("unknown selector `{}`; known: {states}", SafeText::line(text))
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(name) => out.write_str(name.as_str()),
            Self::State(state) => write!(out, "@{state}"),
            Self::Tree(name) => write!(out, "{name}/**"),
            Self::Children(name) => write!(out, "{name}/*"),
        }
    }
}

impl Target {
    /// Whether it is no name of a Pod, but selects Pods by what they are.
    pub fn is_selector(&self) -> bool {
        !matches!(self, Self::Pod(_))
    }

    /// The Pods that it means, parents before their children. A selector means only Pods that lists show.
    fn pods<'a>(&self, known: &'a Known<'_>) -> Result<Vec<&'a PodInfo>, End> {
        let family = known.family;
        let mut pods: Vec<&PodInfo> = match self {
            Self::Pod(name) => return Ok(vec![known.find(name)?]),
            Self::State(state) => in_state(family, state).collect(),
            Self::Tree(name) => family.subtree(&known.find(name)?.name),
            Self::Children(name) => family.children(&known.find(name)?.name).collect(),
        };
        pods.retain(|info| info.is_listed());
        match pods.is_empty() {
            true => Err(End::refused(Why::NotThere, format!("{self} matches no Pod"))),
            false => Ok(pods),
        }
    }
}

/// The listed Pods in one of [`STATES`].
fn in_state<'a>(family: &'a Family, state: &str) -> impl Iterator<Item = &'a PodInfo> {
    let waiting = if state == NEEDS { family.waiting_for_person() } else { HashSet::new() };
    family.listed().filter(move |info| match state {
        NEEDS => waiting.contains(&info.name),
        word => state::of_pod(info) == word,
    })
}

/// The Pods that a line means.
#[derive(Clone, Debug, Default)]
pub struct Meant {
    pub pods: Vec<PodName>,
    /// Whether a selector found any of them, so that the person may not know their names.
    selected: bool,
}

impl Meant {
    /// Pods that an option such as `--all` means.
    pub fn by_option(pods: Vec<PodName>) -> Self {
        Self { pods, selected: false }
    }

    /// Whether the Pods are named in a confirmation before anything is done: unless the person named the only one.
    pub fn is_confirmed(&self, known: &Known<'_>) -> bool {
        self.selected || known.pods_are_marked || self.pods.len() > 1
    }

    /// The names for a confirmation. A selector also finds Pods of other workspaces, which the tree may not show: the
    /// directory stands behind their names.
    pub fn names(&self, known: &Known<'_>) -> String {
        let named = |name: &PodName| {
            let info = known.family.get(name).filter(|_| self.selected);
            let place =
                info.and_then(|info| known.family.place(info, known.workspace, known.selected));
            match place {
                Some(place) => format!("{name} (in {place})"),
                None => name.to_string(),
            }
        };
        let names = self.pods.iter().map(named).collect::<Vec<_>>().join(", ");
        match self.pods.len() {
            0..=COUNTED => names,
            count => format!("{count} Pods: {names}"),
        }
    }
}

/// The Pods that a line means, each once; without a word the selected Pod. A selector means only those Pods that `fits`.
pub fn meant(
    known: &Known<'_>,
    targets: &[Target],
    fits: impl Fn(&PodInfo) -> bool,
) -> Result<Meant, End> {
    if targets.is_empty() {
        return known.target(None).map(|pod| Meant::by_option(vec![pod]));
    }
    let (mut meant, mut seen) = (Meant::default(), HashSet::new());
    for target in targets {
        let mut pods = target.pods(known)?;
        if target.is_selector() {
            meant.selected = true;
            if !pods.iter().any(|info| fits(info)) {
                return Err(End::refused(Why::NotThere, nothing_to_do(target, &pods)));
            }
            pods.retain(|info| fits(info));
        }
        pods.retain(|info| seen.insert(&info.name));
        meant.pods.extend(pods.into_iter().map(|info| info.name.clone()));
    }
    Ok(meant)
}

fn nothing_to_do(target: &Target, pods: &[&PodInfo]) -> String {
    let to = if pods.len() == 1 { "it" } else { "any of them" };
    format!("{target} matches {}, but this verb does nothing to {to}", few(names(pods)))
}

/// The Pods among these and below them that `fits`, each once.
pub fn with_below(
    known: &Known<'_>,
    heads: &[PodName],
    fits: impl Fn(&PodInfo) -> bool,
) -> Vec<PodName> {
    let mut names: Vec<PodName> = Vec::new();
    for info in heads.iter().flat_map(|pod| known.family.subtree(pod)) {
        if fits(info) && !names.contains(&info.name) {
            names.push(info.name.clone());
        }
    }
    names
}

/// The Pod that a word means for a verb that takes exactly one.
pub fn one<'a>(known: &'a Known<'_>, target: &Target) -> Result<&'a PodInfo, End> {
    match target.pods(known)?.as_slice() {
        [one] => Ok(one),
        several => {
            let (count, names) = (several.len(), few(names(several)));
            let text = format!("{target} matches {count} Pods, and one is needed here: {names}");
            Err(End::refused(Why::Usage, text))
        }
    }
}

fn names<'a>(pods: &[&'a PodInfo]) -> impl Iterator<Item = &'a PodName> {
    pods.iter().map(|info| &info.name)
}

/// `a, b, c and 4 more`.
pub fn few<'a>(pods: impl IntoIterator<Item = &'a PodName>) -> String {
    let mut names = pods.into_iter().map(PodName::as_str);
    let named = names.by_ref().take(NAMED).collect::<Vec<_>>().join(", ");
    match names.count() {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// `a, b, c`.
pub fn list(pods: &[PodName]) -> String {
    pods.iter().map(PodName::as_str).collect::<Vec<_>>().join(", ")
}

/// The selectors that can be typed now, each with what it matches, for completion.
pub fn selectors(family: &Family) -> Vec<(String, String)> {
    let state = |state: &&str| {
        let names = few(in_state(family, state).map(|info| &info.name));
        (!names.is_empty()).then(|| (format!("@{state}"), names))
    };
    let parents = family.listed().filter(|info| family.children(&info.name).next().is_some());
    let parts = parts_of(parents.map(|info| &info.name));
    STATES.iter().filter_map(state).chain(parts).collect()
}

fn parts_of<'a>(
    parents: impl Iterator<Item = &'a PodName>,
) -> impl Iterator<Item = (String, String)> {
    parents.flat_map(|name| {
        [
            (Target::Tree(name.clone()).to_string(), format!("{name} and all below it")),
            (Target::Children(name.clone()).to_string(), format!("the children of {name}")),
        ]
    })
}
