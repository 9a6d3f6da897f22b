//! Explaining what the commands of a Pod get, and which instruction files it has.

use crate::host::Answer;
use crate::host::pod::Pod;
use crate::host::pod::calls::reply;
use crate::host::pod::start::{command_env, command_limits, command_time, instruction_files};
use crate::llm::adjust::Learned;
use crate::protocol::{CommandSheet, Event, InstructionFile, Refusal, SegmentId};
use crate::run::{self, Sources};
use crate::sandbox::UserPaths;
use crate::session::{self, Files};
use crate::tools;
use std::path::PathBuf;

impl Pod {
    /// Computes it in a task of its own: it looks at the disk, and may wait for the first look at the sandbox.
    pub(super) fn explain_command(&self, answer: Answer) {
        let (shared, others, threads) =
            (self.shared.clone(), self.others(), self.path_threads.clone());
        let (offered, whole_env) = (self.env.clone(), self.whole_env());
        let ctx = self.tools(&self.looked_at.settings, crate::sandbox::Isolation::Namespaces);
        let (files, segment) = (self.files.clone(), self.row.segment);
        let workspace = self.instructed_in();
        let model = self.provider().ok().flatten();
        let learned = model.map_or_else(Vec::new, |(_, provider)| provider.learned());
        let learned: Vec<String> = learned.iter().map(Learned::sentence).collect();
        tokio::spawn(async move {
            let now = shared.read_settings().await.unwrap_or_else(|_| shared.settings.last());
            let (mistakes, settings) = (now.sentences(), now.settings);
            let person = instruction_files(&shared, &offered, &settings);
            let files = Instructions { files, segment, workspace, person };
            let env = command_env(&settings, &offered);
            let mut withheld: Vec<String> = offered.keys().cloned().collect();
            withheld.retain(|name| !env.contains_key(name));
            let command_limits = command_limits(&settings);
            let credentials = tools::Credentials::of(&settings.credential, &whole_env).into();
            let ctx = tools::Context {
                env,
                credentials,
                command_time: command_time(&settings),
                command_limits,
                ..ctx
            };
            let confinement = shared.confinement().await;
            let (isolation, sandbox) = (confinement.isolation(), confinement.text());
            let ctx = tools::Context { isolation, others: others(), ..ctx };
            let looked = threads.run(move || {
                let instructions = files.listed(&ctx);
                CommandSheet { instructions, ..tools::command_sheet(&ctx) }
            });
            let looked = looked.await;
            let sheet =
                looked.map(|sheet| CommandSheet { sandbox, withheld, mistakes, learned, ..sheet });
            let explained = sheet.map(|sheet| Event::CommandSheet(Box::new(sheet)));
            let failed =
                |why| Refusal::internal(format!("what its commands get is not known: {why}"));
            reply(answer, explained.map_err(failed));
        });
    }
}

/// Where the instruction files of a Pod are, and the log that says what its model was told of them.
struct Instructions {
    files: Files,
    /// The segment that the Pod writes to; `None` before its first run.
    segment: Option<SegmentId>,
    workspace: PathBuf,
    person: Vec<PathBuf>,
}

impl Instructions {
    /// Blocking. Where the log cannot be read, no file counts as changed.
    fn listed(&self, ctx: &tools::Context) -> Vec<InstructionFile> {
        let read = self.segment.and_then(|segment| session::fold(&self.files, segment, 0).ok());
        let secrets = UserPaths { env: &ctx.env }.secrets();
        let sources = Sources {
            person: &self.person,
            workspace: &self.workspace,
            cwd: &ctx.cwd,
            reads: &ctx.scope,
            secrets: &secrets,
        };
        run::instruction_files(&sources, read.as_ref().map(|read| &read.replay))
    }
}
