//! Explaining what the commands of a Pod get.

use crate::host::Answer;
use crate::host::pod::Pod;
use crate::host::pod::calls::reply;
use crate::protocol::{CommandSheet, Event, Refusal};
use crate::tools;

impl Pod {
    /// Computes it in a task of its own: it looks at the disk, and may wait for the first look at the sandbox.
    pub(super) fn explain_command(&self, answer: Answer) {
        let (shared, others, threads) =
            (self.shared.clone(), self.others(), self.path_threads.clone());
        let settings = shared.settings.last().settings;
        let isolation = crate::sandbox::Isolation::Namespaces;
        let ctx = self.tools(&settings, isolation);
        let mut withheld: Vec<String> = self.env.keys().cloned().collect();
        withheld.retain(|name| !ctx.env.contains_key(name));
        tokio::spawn(async move {
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
