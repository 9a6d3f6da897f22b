//! The directory in which a Pod works: its identity, and its new place once it was moved.

use crate::disk;
use crate::host::pod::Pod;
use crate::host::pod::resolved::Resolved;
use crate::protocol::Entry;
use crate::protocol::entry::domain;
use crate::store::Relocated;
use crate::trace::OrLog as _;

impl Pod {
    /// Notes which directory it is, by which it is found again when it was moved.
    pub(super) async fn note_directory(&mut self) {
        let dir = self.row.cwd.clone();
        let found = self.shared.files.run(&self.row.cwd, move || disk::lasting_id(&dir)).await;
        // A run in a path that never answers, or is gone, says so itself.
        let Ok(Some(id)) = found else { return };
        if self.resolved.directory_id.as_ref() == Some(&id) {
            return;
        }
        let resolved = Resolved { directory_id: Some(id.clone()), ..self.resolved.clone() };
        self.store_config(resolved).await.or_log("store the identity of a directory");
        self.change(|info| info.directory_id = Some(id));
    }

    /// The Pod works at another place from now on. Its log gets a new record of the Pod, from which a lost database is
    /// made again.
    pub(super) async fn relocated(&mut self, place: Relocated) {
        let Relocated { pod: _, cwd, workspace, scope } = place;
        if self.resolved.worktree.as_ref().is_some_and(|tree| tree.path != cwd) {
            // A working tree that a person moved is the person's own.
            self.keep_worktree(None).await.or_log("store that a working tree was moved");
        }
        self.row.cwd.clone_from(&cwd);
        self.row.workspace.clone_from(&workspace);
        self.row.scope = scope;
        self.change(|info| {
            info.cwd = cwd;
            info.workspace = workspace;
        });
        self.show_granted();
        let record = Entry::extension(domain::POD, self.row.record());
        self.write_log(vec![record]).await.or_log("log the new directory of a pod");
        crate::crash_point!("move-logged");
    }
}
