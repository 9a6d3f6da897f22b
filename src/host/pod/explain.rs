//! Explaining what the commands of a Pod get.

use crate::host::Answer;
use crate::host::pod::Pod;
use crate::host::pod::calls::reply;
use crate::host::pod::start::{command_env, command_limits, command_time};
use crate::protocol::{CommandSheet, Event, Refusal};
use crate::tools;

impl Pod {
    /// Computes it in a task of its own: it looks at the disk, and may wait for the first look at the sandbox.
    pub(super) fn explain_command(&self, answer: Answer) {
        let (shared, others, threads) =
            (self.shared.clone(), self.others(), self.path_threads.clone());
        let offered = self.env.clone();
        let ctx = self.tools(&self.looked_at.settings, crate::sandbox::Isolation::Namespaces);
        tokio::spawn(async move {
            let (of, dir) = (shared.clone(), shared.dirs.config.clone());
            let now = shared.files.run(&dir, move || of.settings_now().settings).await;
            let settings = now.unwrap_or_else(|_| shared.settings.last().settings);
            let env = command_env(&settings, &offered);
            let mut withheld: Vec<String> = offered.keys().cloned().collect();
            withheld.retain(|name| !env.contains_key(name));
            let command_limits = command_limits(&settings);
            let ctx = tools::Context {
                env,
                command_time: command_time(&settings),
                command_limits,
                ..ctx
            };
            let confinement = shared.confinement().await;
            let (isolation, sandbox) = (confinement.isolation(), confinement.text());
            let ctx = tools::Context { isolation, others: others(), ..ctx };
            let looked = threads.run(move || tools::command_sheet(&ctx)).await;
            let sheet = looked.map(|sheet| CommandSheet { sandbox, withheld, ..sheet });
            let explained = sheet.map(|sheet| Event::CommandSheet(Box::new(sheet)));
            let failed =
                |why| Refusal::internal(format!("what its commands get is not known: {why}"));
            reply(answer, explained.map_err(failed));
        });
    }
}
