//! Limits of a command: that they hold, and that a command that met one says which.

use crate::escape::cell::Cell;
use yoi::protocol::LimitKind;

#[tokio::test]
async fn a_process_of_a_command_opens_as_many_files_as_the_settings_say() {
    for mut cell in [Cell::new(), Cell::without_mounts()] {
        cell.bench.ctx.command_limits.open_files = 100;
        let output = cell.bench.bash("ulimit -Sn; ulimit -Hn; ulimit -n 101 || echo no more").await;
        let content = output.content.unwrap();
        assert!(content.starts_with("100\n100\n") && content.contains("no more"), "{content}");
        let open = "import os\nheld = []\nwhile True: held.append(os.dup(0))";
        cell.bench.file("open.py", open);
        let output = cell.bench.bash("exec python3 open.py").await;
        let met = output.limit.expect("a limit that was met");
        assert_eq!(met.kind, LimitKind::OpenFiles);
        assert!(met.sentence.contains("at most 100 files and sockets open"), "{met:?}");
    }
}
