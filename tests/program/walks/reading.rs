//! Compares everything that shows or keeps the history with the model.

use crate::walks::history::History;
use crate::walks::life::Life;
use crate::walks::words::{of_entry, of_item, of_log, of_screen};
use std::collections::BTreeMap;
use yoi::protocol::{Entry, Event, Method, SegmentId, State};
use yoi::session::{Files, backwards, replay};

pub fn same(what: &str, found: &[String], expected: &[String]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {found:?}\n  expected: {expected:?}"))
}

fn state(model: &History) -> State {
    if model.paused { State::Paused } else { State::Idle }
}

impl Life<'_> {
    /// Which of these histories the Pod of a new host has.
    pub async fn find_history(&mut self, candidates: &[History]) -> Result<History, String> {
        let shown = self.pages(&self.walk.pod, 1 << 20).await;
        let info = self.info();
        let fits = |model: &&History| model.shown == shown && state(model) == info.state;
        let found = candidates.iter().find(fits).cloned();
        found.ok_or_else(|| {
            let expected: Vec<_> = candidates.iter().map(|m| (&m.shown, state(m))).collect();
            format!("after the kill: {shown:?} {info:?}\n  expected one of: {expected:?}")
        })
    }

    /// Compares everything with the model.
    pub async fn check(&mut self, model: &History) -> Result<(), String> {
        let size = [1, 700, 1 << 20][self.walk.dice.below(3)];
        same("pages", &self.pages(&self.walk.pod, size).await, &model.shown)?;
        let info = self.info();
        if info.state != state(model) {
            return Err(format!("state: {info:?}, expected {:?}", state(model)));
        }
        self.check_targets(model).await?;
        if let Some(segment) = info.segment {
            self.check_log_files(segment, model)?;
        }
        self.check_workspace()?;
        self.check_log(model)?;
        let is_wanted = |text: &str| of_screen(text) == model.shown;
        self.screen()
            .shows(is_wanted)
            .or_else(|text| same("screen", &of_screen(&text), &model.shown))
    }

    async fn check_targets(&self, model: &History) -> Result<(), String> {
        let reply = self.call(Method::ListRewindTargets).await;
        let Event::RewindTargets { targets, undo, redo, .. } = reply else {
            return Err("no targets".into());
        };
        let listed: Vec<String> = targets.iter().map(|target| target.preview.clone()).collect();
        let messages: Vec<String> = model.messages.iter().rev().map(|(m, _)| m.clone()).collect();
        same("targets", &listed, &messages)?;
        for (at, target) in targets.iter().enumerate() {
            let drops = target.drops.as_ref().map(|drops| drops.messages);
            if (drops, target.turn_index) != (Some(at + 1), targets.len() - at) {
                return Err(format!("{target:?} at {at}"));
            }
        }
        let offered = (undo.is_some(), redo.is_some());
        if offered != (!model.undo.is_empty(), !model.redo.is_empty()) {
            return Err(format!("undo and redo: {offered:?}"));
        }
        Ok(())
    }

    /// The files of the log, read without the host.
    fn check_log_files(&self, segment: SegmentId, model: &History) -> Result<(), String> {
        let data = self.walk.bench.data();
        let sessions = std::fs::read_dir(data.join("sessions")).expect("the sessions").flatten();
        let ids = sessions.filter_map(|dir| dir.file_name().to_str()?.parse().ok());
        let mut all = ids.map(|session| Files::new(&data, session));
        let found = all.find(|files| files.segment(segment).exists());
        let files = found.ok_or("no session has the segment of the Pod")?;
        let folded = replay(&files, segment, None).map_err(|error| error.to_string())?;
        let history: Vec<String> =
            folded.history.iter().filter_map(|kept| of_item(&kept.item)).collect();
        same("the history in the files", &history, &model.context)?;
        let recent = backwards(&files, segment, None);
        let mut shown: Vec<String> =
            recent.filter_map(|recent| of_entry(&recent.expect("a line").entry)).collect();
        shown.reverse();
        same("the transcript in the files", &shown, &model.shown)?;
        if !folded.damaged.is_empty() {
            return Err(format!("damaged: {:?}", folded.damaged));
        }
        Ok(())
    }

    /// What tools wrote stays, and nothing else is there.
    fn check_workspace(&self) -> Result<(), String> {
        let ws = self.walk.bench.ws();
        let name =
            |path: &std::path::Path| path.strip_prefix(&ws).unwrap_or(path).display().to_string();
        let content = |path| std::fs::read_to_string(path).unwrap_or_default();
        let found = crate::bench::files(&ws);
        let found: BTreeMap<_, _> = found.iter().map(|path| (name(path), content(path))).collect();
        if found == self.walk.files {
            return Ok(());
        }
        Err(format!("workspace: {found:?}\n  expected: {:?}", self.walk.files))
    }

    /// `yoi log`, as text and as JSON.
    fn check_log(&self, model: &History) -> Result<(), String> {
        let (bench, pod) = (&self.walk.bench, self.walk.pod.as_str());
        let text = bench.yoi(&["log", pod]);
        if text.code != Some(0) || !text.err.is_empty() {
            return Err(format!("yoi log: {text:?}"));
        }
        same("yoi log", &of_log(&text.out), &model.shown)?;
        let entries = bench.log(pod).into_iter().map(serde_json::from_value::<Entry>);
        let json: Vec<String> =
            entries.filter_map(|entry| of_entry(&entry.expect("an entry"))).collect();
        same("yoi log --json", &json, &model.shown)
    }
}
