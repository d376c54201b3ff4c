//! Runs Python files in the sandbox, each as a job of its own, and shows what came of them.
//!
//! `cargo run -p traderharness-sandbox --example run_file -- PYTHON WORKER FILE...`

use std::path::PathBuf;
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::protocol::{Frozen, Limits};
use traderharness_sandbox::{Interpreter, Job, Pool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(python), Some(worker)) = (arguments.next(), arguments.next()) else { return Err("PYTHON WORKER FILE...".into()) };
    let pool = Pool::new(Interpreter { python, worker }, 1);
    let found = pool.warm()?;
    #[expect(clippy::print_stdout, reason = "an example talks")]
    for file in arguments {
        let code = std::fs::read_to_string(&file)?;
        let workspace = tempfile::tempdir()?;
        let job = Job {
            code: &code,
            limits: Limits { deadline_ms: 2_000, ..Limits::default() },
            workspace: workspace.path(),
            frozen: Frozen { epoch_seconds: 946_690_200, seed: 1 },
            strict: true,
        };
        let started = std::time::Instant::now();
        let ran = pool.run(&job, &mut NoCalls)?;
        println!("{}: {:?} ({:?}, pandas {})", file.display(), ran, started.elapsed(), found.pandas);
    }
    Ok(())
}
