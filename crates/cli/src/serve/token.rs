//! The token of a server without a configuration: drawn once, kept where only its owner reads it, found again by the next start.

use crate::fault::{Class, Fault, read_text};
use crate::manifest::write_whole;
use std::path::{Path, PathBuf};
use traderharness_serve::caller::draw_token;
use traderharness_serve::private::close_private;

/// A token, and the file it is in.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) token: String,
    pub(crate) path: Option<PathBuf>,
}

/// A new token and its digest.
pub(super) fn new() -> Result<(String, String), Fault> {
    draw_token().map_err(|e| Fault::text(Class::Environment, format!("the system gives no random bytes: {e}")))
}

/// The token of a keep folder; drawn when it has none.
pub(super) fn of(keep: Option<&Path>) -> Result<Kept, Fault> {
    let Some(keep) = keep else { return Ok(Kept { token: new()?.0, path: None }) };
    let folder = keep.join("private");
    let path = folder.join("token");
    if path.exists() {
        let token = read_text("token", &path)?.trim().to_owned();
        if token.len() < 32 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Fault::text(Class::Input, format!("`{}` holds no token", path.display()))
                .hint("remove the file to draw a new one"));
        }
        return Ok(Kept { token, path: Some(path) });
    }
    let fault = |e: std::io::Error| Fault::new(Class::Environment, e).context(format!("`{}` cannot be made", folder.display()));
    // The keep folder too, where it is new: the files of agents lie in it.
    close_private(&folder).map_err(fault)?;
    let (token, _) = new()?;
    write_whole(&path, format!("{token}\n").as_bytes(), true)?;
    Ok(Kept { token, path: Some(path) })
}
