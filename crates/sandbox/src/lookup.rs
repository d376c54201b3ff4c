//! Where the Python of the sandbox and its worker module are. Looks at files, starts nothing, and never takes a Python that merely
//! happens to be on the path: packages of other versions would give other bytes.
//!
//! Each of the two is looked for on its own, and the first place wins:
//!
//! 1. the option `--python` / `--worker` (or what a program passes in [`Asked`]),
//! 2. the variable [`PYTHON`] / [`WORKER`],
//! 3. beside the program, `../lib/traderharness/venv/bin/python` and `../lib/traderharness/traderharness_worker.so`,
//! 4. the cargo target folder that the program lies in, `sandbox/venv/bin/python` and `sandbox/traderharness_worker.so`, where
//!    `cargo xtask setup` puts them.
//!
//! What an option or a variable names must be there; the search does not go on behind a typing mistake.

use crate::Interpreter;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Variable that names the Python.
pub const PYTHON: &str = "TRADERHARNESS_PYTHON";
/// Variable that names the worker module.
pub const WORKER: &str = "TRADERHARNESS_WORKER";
/// File name of the worker module; without its ending the name under which Python imports it.
pub const MODULE: &str = "traderharness_worker.so";
/// Exact versions of every package that agent code may import, as pip reads them.
pub const REQUIREMENTS: &str = include_str!("../../sandbox-worker/requirements.txt");

/// Python inside an environment. Never resolved further: an environment is recognised by the path its Python is started by.
const VENV_PYTHON: &str = "venv/bin/python";

/// What the caller asks for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Python to use: a path, or a name to look up on `PATH`.
    pub python: Option<PathBuf>,
    /// Worker module to use.
    pub worker: Option<PathBuf>,
}

/// Which place something was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The caller named it.
    Option,
    /// The variable named it.
    Variable,
    /// Beside the program.
    Installed,
    /// In the cargo target folder of the program.
    Workspace,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Option => "option",
            Self::Variable => "variable",
            Self::Installed => "installed",
            Self::Workspace => "workspace",
        })
    }
}

/// Both, with their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What a pool is made of.
    pub interpreter: Interpreter,
    /// Where the Python was found.
    pub python_from: Place,
    /// Where the worker was found.
    pub worker_from: Place,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The Python.
    Python,
    /// The worker module.
    Worker,
}

impl Part {
    const fn variable(self) -> &'static str {
        match self {
            Self::Python => PYTHON,
            Self::Worker => WORKER,
        }
    }

    const fn option(self) -> &'static str {
        match self {
            Self::Python => "--python",
            Self::Worker => "--worker",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "Python",
            Self::Worker => "worker module",
        })
    }
}

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// It is in none of the places.
    #[error("the {part} of the code sandbox is not there; looked for {}", shown(looked))]
    Absent {
        /// What.
        part: Part,
        /// Files that were looked for.
        looked: Vec<PathBuf>,
    },
    /// What was named is no file.
    #[error("{named} names `{}`, which is no file", path.display())]
    NoFile {
        /// What.
        part: Part,
        /// Option or variable.
        named: &'static str,
        /// What it says.
        path: PathBuf,
    },
}

impl LookupError {
    /// What to do, with the command.
    pub fn fix(&self) -> String {
        match self {
            Self::Absent { part, .. } => {
                format!("run `cargo xtask setup` in the workspace; elsewhere pass {} or set {}", part.option(), part.variable())
            }
            Self::NoFile { named, .. } => format!("correct {named}, or leave it out and run `cargo xtask setup`"),
        }
    }
}

fn shown(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "nothing: the program does not know its own path".to_owned();
    }
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ")
}

/// Looks with the environment and the path of this program.
///
/// # Errors
/// [`LookupError`], with the fix.
pub fn find(asked: &Asked) -> Result<Found, LookupError> {
    let executable = std::env::current_exe().ok();
    Search { variable: &|name| std::env::var_os(name), executable: executable.as_deref() }.find(asked)
}

/// Looks with a given environment and path of the program.
pub struct Search<'a> {
    /// Value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The program.
    pub executable: Option<&'a Path>,
}

impl fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search").field("executable", &self.executable).finish_non_exhaustive()
    }
}

impl Search<'_> {
    /// Both.
    ///
    /// # Errors
    /// [`LookupError`], of the Python first.
    pub fn find(&self, asked: &Asked) -> Result<Found, LookupError> {
        let (python, python_from) = self.part(Part::Python, asked.python.as_deref(), VENV_PYTHON)?;
        let (worker, worker_from) = self.part(Part::Worker, asked.worker.as_deref(), MODULE)?;
        Ok(Found { interpreter: Interpreter { python, worker }, python_from, worker_from })
    }

    fn part(&self, part: Part, asked: Option<&Path>, file: &str) -> Result<(PathBuf, Place), LookupError> {
        if let Some(path) = asked {
            return Ok((self.named(part, part.option(), path)?, Place::Option));
        }
        if let Some(value) = (self.variable)(part.variable()).filter(|value| !value.is_empty()) {
            return Ok((self.named(part, part.variable(), Path::new(&value))?, Place::Variable));
        }
        let mut looked = Vec::new();
        for (folder, place) in self.folders() {
            let path = folder.join(file);
            if path.is_file() {
                return Ok((path, place));
            }
            looked.push(path);
        }
        Err(LookupError::Absent { part, looked })
    }

    /// What was named, as a whole path: the worker starts in a folder of its own.
    fn named(&self, part: Part, named: &'static str, path: &Path) -> Result<PathBuf, LookupError> {
        let absent = || LookupError::NoFile { part, named, path: path.to_path_buf() };
        let bare = part == Part::Python && path.components().count() == 1 && !path.is_absolute();
        let found = if path.is_file() || !bare {
            path.to_path_buf()
        } else {
            let folders = (self.variable)("PATH").ok_or_else(absent)?;
            std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file()).ok_or_else(absent)?
        };
        let found = std::path::absolute(found).map_err(|_| absent())?;
        if found.is_file() { Ok(found) } else { Err(absent()) }
    }

    /// Folders to look in, best first.
    fn folders(&self) -> Vec<(PathBuf, Place)> {
        let mut folders = Vec::new();
        let Some(executable) = self.executable else { return folders };
        // A link to the program on somebody's path is not where the program is.
        let executable = executable.canonicalize().unwrap_or_else(|_| executable.to_path_buf());
        if let Some(prefix) = executable.parent().and_then(Path::parent) {
            folders.push((prefix.join("lib/traderharness"), Place::Installed));
        }
        // target/PROFILE/program, target/PROFILE/deps/program, target/TRIPLE/PROFILE/deps/program
        let target = executable.ancestors().skip(2).take(3).find(|folder| folder.join("CACHEDIR.TAG").is_file());
        folders.extend(target.map(|target| (target.join("sandbox"), Place::Workspace)));
        folders
    }
}

/// Exact version of a package for a Python, as [`REQUIREMENTS`] pins it.
pub fn pinned(package: &str, python: (u32, u32)) -> Option<&'static str> {
    packages(python).into_iter().find(|(name, _)| *name == package).map(|(_, version)| version)
}

/// Every package with its exact version for a Python of this version, in the order of [`REQUIREMENTS`].
pub fn packages(python: (u32, u32)) -> Vec<(&'static str, &'static str)> {
    REQUIREMENTS.lines().filter_map(|line| requirement(line, python)).collect()
}

/// `name==version`, or `name==version; python_version < "3.14"`, or the same with `>=`.
fn requirement(line: &'static str, python: (u32, u32)) -> Option<(&'static str, &'static str)> {
    let (exact, marker) = line.split_once(';').map_or((line, None), |(exact, marker)| (exact, Some(marker.trim())));
    let bound = |marker: &str, operator: &str| {
        let version = marker.strip_prefix("python_version")?.trim().strip_prefix(operator)?.trim().trim_matches('"');
        let (major, minor) = version.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let holds = match marker {
        None => true,
        Some(marker) => match (bound(marker, ">="), bound(marker, "<")) {
            (Some(least), _) => python >= least,
            (None, Some(below)) => python < below,
            (None, None) => false,
        },
    };
    let (name, version) = exact.trim().split_once("==")?;
    (holds && !name.starts_with('#')).then_some((name.trim(), version.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with a program, a Python and a worker where `files` say.
    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        folder
    }

    /// What is found in a tree for a program at `program`, with paths relative to the tree.
    fn check(
        files: &[&str],
        program: &str,
        variables: &[(&str, &str)],
        asked: Asked,
        expected: Result<(&str, Place, &str, Place), &str>,
    ) {
        let folder = tree(&[files, &[program]].concat());
        let root = folder.path().canonicalize().expect("there");
        let inside = |value: &str| value.replace("ROOT", &root.display().to_string());
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| inside(value).into());
        let asked = Asked { python: asked.python.map(|p| root.join(p)), worker: asked.worker.map(|p| root.join(p)) };
        let found = Search { variable: &variable, executable: Some(&root.join(program)) }.find(&asked);
        match (found, expected) {
            (Ok(found), Ok((python, python_from, worker, worker_from))) => {
                assert_eq!(found.interpreter, Interpreter { python: root.join(python), worker: root.join(worker) });
                assert_eq!((found.python_from, found.worker_from), (python_from, worker_from));
            }
            (Err(error), Err(text)) => {
                let said = format!("{error}; {}", error.fix()).replace(&root.display().to_string(), "ROOT");
                assert_eq!(said, text);
            }
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    const BUILT: &[&str] = &["t/CACHEDIR.TAG", "t/sandbox/venv/bin/python", "t/sandbox/traderharness_worker.so"];
    const IN_T: Result<(&str, Place, &str, Place), &str> =
        Ok(("t/sandbox/venv/bin/python", Place::Workspace, "t/sandbox/traderharness_worker.so", Place::Workspace));

    #[test]
    fn a_program_in_a_target_folder_finds_what_set_up_made() {
        for program in ["t/debug/traderharness", "t/release/traderharness", "t/debug/deps/it-1", "t/x86_64-linux/debug/deps/it-1"]
        {
            check(BUILT, program, &[], Asked::default(), IN_T);
        }
    }

    #[test]
    fn a_folder_that_is_no_target_folder_is_not_searched() {
        check(
            &["t/sandbox/venv/bin/python", "t/sandbox/traderharness_worker.so"],
            "t/bin/traderharness",
            &[],
            Asked::default(),
            Err("the Python of the code sandbox is not there; looked for ROOT/t/lib/traderharness/venv/bin/python; \
                 run `cargo xtask setup` in the workspace; elsewhere pass --python or set TRADERHARNESS_PYTHON"),
        );
    }

    #[test]
    fn the_first_place_wins_for_each_part() {
        let all = [BUILT, &["t/lib/traderharness/venv/bin/python", "my/python", "my/worker.so", "env/python"]].concat();
        let installed = ("t/lib/traderharness/venv/bin/python", Place::Installed);
        let built = ("t/sandbox/traderharness_worker.so", Place::Workspace);
        let program = "t/debug/traderharness";
        check(&all, program, &[], Asked::default(), Ok((installed.0, installed.1, built.0, built.1)));
        let variable = [(PYTHON, "ROOT/env/python")];
        check(&all, program, &variable, Asked::default(), Ok(("env/python", Place::Variable, built.0, built.1)));
        check(&all, program, &[(PYTHON, "")], Asked::default(), Ok((installed.0, installed.1, built.0, built.1)));
        let asked = Asked { python: Some("my/python".into()), worker: Some("my/worker.so".into()) };
        check(&all, program, &variable, asked, Ok(("my/python", Place::Option, "my/worker.so", Place::Option)));
    }

    #[test]
    fn a_name_is_looked_up_on_the_path() {
        let files = [BUILT, &["bin/python3.12"]].concat();
        let program = "t/debug/traderharness";
        let variables = [(PYTHON, "python3.12"), ("PATH", "ROOT/none:ROOT/bin")];
        let expected = Ok(("bin/python3.12", Place::Variable, "t/sandbox/traderharness_worker.so", Place::Workspace));
        check(&files, program, &variables, Asked::default(), expected);
    }

    #[test]
    fn what_is_named_and_not_there_ends_the_search() {
        check(
            BUILT,
            "t/debug/traderharness",
            &[(WORKER, "ROOT/gone.so")],
            Asked::default(),
            Err(
                "TRADERHARNESS_WORKER names `ROOT/gone.so`, which is no file; correct TRADERHARNESS_WORKER, or leave it out and run \
                 `cargo xtask setup`",
            ),
        );
        let asked = Asked { python: Some("gone".into()), worker: None };
        check(
            BUILT,
            "t/debug/traderharness",
            &[],
            asked,
            Err("--python names `ROOT/gone`, which is no file; correct --python, or leave it out and run `cargo xtask setup`"),
        );
    }

    #[test]
    fn one_version_of_each_package_holds_for_a_python() {
        for (python, numpy) in [((3, 10), "2.2.6"), ((3, 13), "2.2.6"), ((3, 14), "2.3.5")] {
            assert_eq!(pinned("numpy", python), Some(numpy));
            let names: Vec<&str> = packages(python).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["numpy", "pandas", "python-dateutil", "pytz", "six", "tzdata"]);
        }
        assert_eq!(pinned("scipy", (3, 11)), None);
    }
}
