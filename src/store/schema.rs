//! The tables. Each element migrates from the version before it; the database's `user_version` is
//! how many have been applied.

/// In order, never changed once released.
pub const MIGRATIONS: &[&str] = &["
    CREATE TABLE pods (
        key       TEXT PRIMARY KEY,            -- the name in lower case
        name      TEXT NOT NULL,
        parent    TEXT REFERENCES pods (key) ON DELETE SET NULL,
        wanted    TEXT NOT NULL,               -- live or stopped
        cwd       BLOB NOT NULL,               -- paths are bytes
        workspace BLOB NOT NULL,
        session   TEXT NOT NULL,
        segment   TEXT,
        config    TEXT NOT NULL,               -- JSON
        scope     TEXT NOT NULL,               -- JSON
        env       TEXT NOT NULL,               -- JSON
        created   INTEGER NOT NULL,            -- milliseconds since the Unix epoch
        since     INTEGER NOT NULL,
        seen      INTEGER NOT NULL,
        last      TEXT
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE mail (
        place   INTEGER PRIMARY KEY AUTOINCREMENT,
        pod     TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        id      TEXT NOT NULL,
        kind    TEXT NOT NULL,
        payload TEXT NOT NULL,                 -- JSON; null once taken
        created INTEGER NOT NULL,
        taken   INTEGER NOT NULL DEFAULT 0,    -- kept, so that the id is never accepted again
        UNIQUE (pod, id)
    ) STRICT;

    CREATE INDEX mail_waiting ON mail (pod, place) WHERE taken = 0;
"];
