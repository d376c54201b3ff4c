//! Files: the workspace for reading and writing, the interpreter's own for reading, nothing else; no network, no signals to others.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::libc;
use std::path::{Path, PathBuf};

/// ABI that the rules are written for; older kernels hold what they know of it.
const WRITTEN_FOR: ABI = ABI::V6;

/// ABI of the kernel; 0 for none.
pub(crate) fn abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with a null pointer, size zero and this flag the call only returns a number.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    u32::try_from(answer).unwrap_or(0)
}

/// Puts the rules in force. The ABI that holds; 0 for none.
pub(crate) fn apply(workspace: &Path, readable: &[PathBuf]) -> u32 {
    let abi = abi();
    if abi == 0 {
        return 0;
    }
    match rules(workspace, readable) {
        Ok(RulesetStatus::NotEnforced) | Err(_) => 0,
        Ok(_) => abi,
    }
}

fn rules(workspace: &Path, readable: &[PathBuf]) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WRITTEN_FOR))?
        .handle_access(AccessNet::from_all(WRITTEN_FOR))?
        .scope(Scope::from_all(WRITTEN_FOR))?
        .create()?;
    // Not among them: links, devices, sockets, pipes, execution.
    let write = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::Refer;
    rules = allow(rules, workspace, write)?;
    for path in readable {
        rules = allow(rules, path, AccessFs::ReadFile | AccessFs::ReadDir)?;
    }
    rules = allow(rules, Path::new("/dev/null"), AccessFs::ReadFile | AccessFs::WriteFile)?;
    Ok(rules.restrict_self()?.ruleset)
}

/// A path that is not there needs no rule.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let Ok(fd) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(WRITTEN_FOR) };
    rules.add_rule(PathBeneath::new(fd, access))
}
