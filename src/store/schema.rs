//! The tables. Each element migrates from the version before it; the database's `user_version` is
//! the number of applied ones.

/// In order, never changed once released.
pub const MIGRATIONS: &[&str] = &[
    "
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
",
    "
    ALTER TABLE pods ADD COLUMN gaps TEXT NOT NULL DEFAULT '{}';   -- JSON: where it reads only
    ALTER TABLE pods ADD COLUMN last_run TEXT;                     -- JSON: how its last run ended

    CREATE TABLE peers (                       -- one row a pair: never one-sided
        a     TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        b     TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        since INTEGER NOT NULL,
        PRIMARY KEY (a, b),
        CHECK (a < b)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE loans (
        place    INTEGER PRIMARY KEY AUTOINCREMENT,
        lender   TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        borrower TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        rule     TEXT NOT NULL,                -- JSON
        kind     TEXT NOT NULL                 -- born or lent
    ) STRICT;

    CREATE TABLE cursors (                     -- how far one Pod has read another
        reader TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        pod    TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        entry  TEXT NOT NULL,
        PRIMARY KEY (reader, pod)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE asks (
        id      TEXT PRIMARY KEY,              -- the entry in the log
        pod     TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        ask     TEXT NOT NULL,                 -- JSON
        verdict TEXT                           -- JSON; null while it waits
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE policy (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        pod     TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        tree    INTEGER NOT NULL,
        tool    TEXT NOT NULL,
        pattern TEXT NOT NULL,
        action  TEXT NOT NULL,
        created INTEGER NOT NULL
    ) STRICT;
",
    "
    CREATE TABLE discards (                    -- sessions that are nobody's for good
        session TEXT PRIMARY KEY
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE pods ADD COLUMN ephemeral INTEGER NOT NULL DEFAULT 0;
",
    "
    CREATE TABLE consents (                    -- where a person agreed that text is sent
        provider TEXT NOT NULL,
        base_url TEXT NOT NULL,
        key      TEXT NOT NULL,                -- where the key comes from
        created  INTEGER NOT NULL,
        PRIMARY KEY (provider, base_url, key)
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE consents RENAME TO old_consents;

    CREATE TABLE consents (                    -- where a person agreed that text is sent
        id       INTEGER PRIMARY KEY AUTOINCREMENT,   -- no number of a row of policy, ever
        provider TEXT NOT NULL,
        base_url TEXT NOT NULL,
        key      TEXT NOT NULL,                -- where the key comes from
        created  INTEGER NOT NULL,
        UNIQUE (provider, base_url, key)
    ) STRICT;

    INSERT INTO consents (id, provider, base_url, key, created)
        SELECT row_number() OVER (ORDER BY created)
                + (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'policy'),
            provider, base_url, key, created
        FROM old_consents;

    DROP TABLE old_consents;
",
    "
    CREATE TABLE mesh_choices (                -- Pods that a person had join the mesh, or leave it
        pod    TEXT PRIMARY KEY REFERENCES pods (key) ON DELETE CASCADE,
        joined INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE mesh_blocks (                 -- agents whose messages no Pod takes
        name    TEXT PRIMARY KEY,
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE trusts (                      -- workspaces whose settings file a person trusts
        id        INTEGER PRIMARY KEY AUTOINCREMENT,  -- a number as in consents
        workspace TEXT NOT NULL UNIQUE,
        sha256    TEXT NOT NULL,               -- of the file, hex
        created   INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE clients (                     -- MCP clients that may use Pods
        id      INTEGER PRIMARY KEY AUTOINCREMENT,    -- a number as in consents
        folder  TEXT NOT NULL,
        name    TEXT NOT NULL,
        created INTEGER NOT NULL,
        UNIQUE (folder, name)
    ) STRICT;

    CREATE TABLE server_tools (                -- what a person agreed that an MCP server offers
        server TEXT PRIMARY KEY,               -- the hash of its definition
        tools  TEXT NOT NULL                   -- JSON: the hash of each tool by its name
    ) STRICT, WITHOUT ROWID;

    -- Until now all of these were rows of consents, told apart by what stood for the provider.
    INSERT INTO trusts (id, workspace, sha256, created)
        SELECT id, base_url, key, created FROM consents
        WHERE provider = 'workspace/.yoi/config.toml'
        ORDER BY id ON CONFLICT (workspace) DO UPDATE SET sha256 = excluded.sha256;
    INSERT INTO clients (id, folder, name, created)
        SELECT id, base_url, key, created FROM consents WHERE provider = 'mcp/client';
    INSERT INTO server_tools (server, tools)
        SELECT base_url, key FROM consents
        WHERE provider = 'mcp/tools'
        ORDER BY id ON CONFLICT (server) DO UPDATE SET tools = excluded.tools;
    DELETE FROM consents
        WHERE provider IN ('workspace/.yoi/config.toml', 'mcp/client', 'mcp/tools');
",
    "
    -- What a rule or an approval opened ends when the rule is revoked. A Pod that has something
    -- from itself has it in this way.
    UPDATE loans SET kind = 'granted' WHERE lender = borrower;
",
    "
    CREATE TABLE learned (                     -- what providers refused, and requests do without
        learned TEXT PRIMARY KEY,              -- JSON
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE runs (                        -- what each run did, for a month
        entry TEXT PRIMARY KEY,                -- the one that ended it
        pod   TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        at    INTEGER NOT NULL,                -- milliseconds since the Unix epoch
        last  TEXT NOT NULL,                   -- JSON: how it ended
        work  TEXT NOT NULL                    -- JSON
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX runs_at ON runs (at);
",
    "
    ALTER TABLE pods ADD COLUMN later INTEGER; -- when a person put off what it waits for
",
    "
    CREATE TABLE machine_peers (               -- Pods and agents of other machines
        pod    TEXT NOT NULL,                  -- its key; a row outlives the Pod, so that the other side is told
        name   TEXT NOT NULL,
        agent  TEXT NOT NULL,                  -- with its machine
        generation INTEGER NOT NULL,           -- the next one begins when a side ends it
        here   INTEGER NOT NULL,               -- whether this side wants it in this generation
        there  INTEGER NOT NULL,               -- whether the other side does
        owed   INTEGER NOT NULL,               -- whether the other side has to be told
        id     TEXT NOT NULL,                  -- of what was said last
        reason TEXT NOT NULL,
        since  INTEGER NOT NULL,
        PRIMARY KEY (pod, agent)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE machine_network (             -- at most one row: the machines that those rows are about
        name   TEXT PRIMARY KEY                -- of this machine, with its server's certificate
    ) STRICT, WITHOUT ROWID;
",
    "
    -- The place of the message that was taken last, in the stream of this machine.
    ALTER TABLE machine_network ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
    -- A machine is blocked as `casa:`, an agent as `casa`, which meant both.
    INSERT OR IGNORE INTO mesh_blocks (name, created) SELECT name || ':', created FROM mesh_blocks
        WHERE name NOT GLOB '*[^a-z0-9-]*' AND length(name) <= 32
        AND EXISTS (SELECT 1 FROM machine_network);
",
    "
    CREATE TABLE jobs (                        -- commands in the background: those that run, and the newest
        pod     TEXT NOT NULL REFERENCES pods (key) ON DELETE CASCADE,
        number  INTEGER NOT NULL,              -- never given twice
        command TEXT NOT NULL,
        runs    INTEGER NOT NULL,              -- 1 until its end is stored
        PRIMARY KEY (pod, number)
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE pods ADD COLUMN cost REAL;     -- in US dollars, when a run ended last; null: unknown
",
];

/// The number of the next row that a person revokes by its number: a rule, a consent, a trust or a
/// client. They share one sequence, and no number is given twice.
pub const NEXT_NUMBER: &str = "(SELECT 1 + coalesce(max(seq), 0) FROM sqlite_sequence
    WHERE name IN ('policy', 'consents', 'trusts', 'clients'))";
