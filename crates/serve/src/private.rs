//! Folders of which only their owner may see what is in them: keep folders, `private/` of a run or of a server. One place makes them, so
//! that none is open for a moment and closed later. Where the system knows no owners they are plain folders.

use std::path::Path;

/// Makes a folder and those above it that are not there; every new one is its owner's alone. One that is there stays as its owner has it.
///
/// # Errors
/// What the system says.
pub fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// As [`make_private`], and closes the folder where it was there already.
///
/// # Errors
/// What the system says.
pub fn close_private(folder: &Path) -> std::io::Result<()> {
    make_private(folder)?;
    #[cfg(unix)]
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    type Make = fn(&Path) -> std::io::Result<()>;

    /// The modes of a folder that was there, open to all, and of a new one in it, after one of the two was made at `place`.
    fn check(make: Make, place: &str, expected: (u32, Option<u32>)) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("there");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        make(&root.path().join(place)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).ok().map(|meta| meta.permissions().mode() & 0o777);
        assert_eq!((mode(&folder).unwrap(), mode(&folder.join("new"))), expected, "{place}");
    }

    #[test]
    fn a_new_folder_is_closed_and_only_the_one_that_is_named_is_changed() {
        check(make_private, "there/new", (0o755, Some(0o700)));
        check(make_private, "there", (0o755, None));
        check(make_private, "there/new/inner", (0o755, Some(0o700)));
        check(close_private, "there/new", (0o755, Some(0o700)));
        check(close_private, "there", (0o700, None));
    }
}
