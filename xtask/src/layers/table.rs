//! Who may depend on whom: the table of the design page, as data. A new edge needs a line here first, with its reason in the review.

/// A package and the internal packages that its library or binary may use (normal and build dependencies).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Folder under `crates/`, or the package name outside of it.
    pub(crate) package: &'static str,
    /// Packages it may use.
    pub(crate) may_use: &'static [&'static str],
}

const fn row(package: &'static str, may_use: &'static [&'static str]) -> Row {
    Row { package, may_use }
}

const BELOW_DOORS: &[&str] =
    &["contract", "market", "tools-market", "tools-exec", "sandbox", "replay", "harness", "ingest", "connect"];
const ALL: &[&str] = &[
    "contract",
    "market",
    "tools-market",
    "tools-exec",
    "sandbox",
    "sandbox-worker",
    "replay",
    "harness",
    "ingest",
    "connect",
    "serve",
    "python",
    "cli",
];

/// The table. `xtask` has no entry on purpose: it must start while the house does not compile.
pub(crate) const ROWS: &[Row] = &[
    row("contract", &[]),
    row("market", &[]),
    row("ingest", &["market"]),
    row("replay", &["contract"]),
    row("tools-market", &["contract", "market"]),
    row("tools-exec", &["contract", "market"]),
    row("sandbox", &["contract", "market"]),
    row("sandbox-worker", &["sandbox"]),
    row("harness", &["contract", "market", "tools-market", "tools-exec", "sandbox", "replay"]),
    row("connect", &["contract", "replay", "harness"]),
    row("serve", BELOW_DOORS),
    row("python", BELOW_DOORS),
    row(
        "cli",
        &[
            "contract",
            "market",
            "tools-market",
            "tools-exec",
            "sandbox",
            "sandbox-worker",
            "replay",
            "harness",
            "ingest",
            "connect",
            "serve",
        ],
    ),
    // Examples: each takes only the layers that it shows.
    row("contract-only", &["contract"]),
    row("own-tool", &["contract", "market", "tools-market", "harness", "ingest"]),
    row("own-loop", &["market", "harness", "ingest"]),
    row("xtask", &[]),
    row("xtask-linked", ALL),
    row("tests", ALL),
];

/// Crates whose root file must deny the bans of `clippy.toml`: the pure ones, and the harness, which gets files and time from its
/// host. `ingest`, `replay` and the command are the seams that open files.
pub(crate) const DENYING: &[&str] = &["contract", "market", "tools-market", "tools-exec", "harness"];

/// Crates that see the market or the contract and nothing of the host.
pub(crate) const PURE: &[&str] = &["contract", "market", "tools-market", "tools-exec"];

/// External crates that some packages must not be able to reach, however long the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forbidden {
    /// Names of external packages.
    pub(crate) crates: &'static [&'static str],
    /// Packages that must not reach them.
    pub(crate) from: &'static [&'static str],
    /// Why.
    pub(crate) why: &'static str,
}

/// Reachability rules, over normal and build dependencies.
pub(crate) const FORBIDDEN: &[Forbidden] = &[
    Forbidden {
        crates: &["pyo3", "pyo3-ffi", "numpy"],
        from: &[
            "contract",
            "market",
            "ingest",
            "replay",
            "tools-market",
            "tools-exec",
            "sandbox",
            "harness",
            "connect",
            "serve",
            "cli",
            "xtask",
            "xtask-linked",
            "tests",
        ],
        why: "an interpreter is linked by the sandbox worker and the Python package only",
    },
    Forbidden {
        crates: &["tokio", "async-std", "smol", "mio", "hyper", "reqwest", "ureq", "axum", "rmcp", "tonic", "rustls", "socket2"],
        from: PURE,
        why: "handlers are synchronous and never talk to a network",
    },
    Forbidden {
        crates: &[
            "arrow", "fs-err", "glob", "ignore", "memmap2", "notify", "parquet", "polars", "rusqlite", "tempfile", "walkdir",
            "zstd",
        ],
        from: PURE,
        why: "a crate that can open a file can see the future",
    },
    Forbidden {
        crates: &["chrono", "fastrand", "rand", "rayon", "iana-time-zone"],
        from: PURE,
        why: "no wall clock, random source or thread order may reach an output",
    },
    Forbidden {
        crates: &["parquet", "arrow", "polars"],
        from: &["replay", "sandbox", "sandbox-worker", "harness"],
        why: "stores are handed in; only `ingest` reads datasets",
    },
    Forbidden {
        crates: &["reqwest", "axum", "rmcp", "tokio"],
        from: &["ingest", "replay", "sandbox", "harness"],
        why: "neither data, recordings nor a trading day come from a network",
    },
];

/// An external crate that few packages may name in their own (not dev) dependencies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnlyThrough {
    /// Name of the external package.
    pub(crate) name: &'static str,
    /// Packages that may depend on it directly.
    pub(crate) packages: &'static [&'static str],
    /// Why.
    pub(crate) why: &'static str,
}

/// Crates with one place.
pub(crate) const ONLY_THROUGH: &[OnlyThrough] = &[
    OnlyThrough { name: "parquet", packages: &["ingest"], why: "one reader of datasets" },
    OnlyThrough { name: "jsonschema", packages: &["contract"], why: "one validator, one order of issues" },
    OnlyThrough { name: "pyo3", packages: &["sandbox-worker", "python"], why: "no Python in the host" },
    OnlyThrough { name: "reqwest", packages: &["connect"], why: "model clients are the only network users of a run" },
    OnlyThrough { name: "rmcp", packages: &["serve", "connect"], why: "the protocol is a door, or a plug-in tool's" },
    OnlyThrough { name: "axum", packages: &["serve"], why: "the protocol is a door" },
    OnlyThrough { name: "anyhow", packages: &["cli", "xtask", "xtask-linked", "tests"], why: "libraries have typed errors" },
    OnlyThrough { name: "clap", packages: &["cli", "xtask", "xtask-linked"], why: "libraries parse no command line" },
    OnlyThrough { name: "indicatif", packages: &["cli", "xtask-linked"], why: "libraries draw no progress bar" },
];
