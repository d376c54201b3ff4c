//! Tracebacks of the agent's own frames, as Python writes them. Frames of libraries and of the sandbox are left out: they show paths of
//! this machine and help nobody. Reads attributes of frames only and runs no code of the agent's.

use pyo3::prelude::*;
use std::sync::OnceLock;

/// File name of the agent's code.
pub(crate) const FILE: &str = "<agent>";
/// Frames that are shown at each end of a long traceback.
const SHOWN: usize = 8;

/// Characters of a line of source that are shown.
const WIDEST: usize = 200;

static SOURCE: OnceLock<Vec<String>> = OnceLock::new();

/// One frame.
struct Place {
    line: usize,
    name: String,
}

/// Remembers the code, so that tracebacks can show its lines.
pub(crate) fn remember(code: &str) {
    // Set once: there is one job per process.
    let _ = SOURCE.set(code.lines().map(str::to_owned).collect());
}

/// From a frame outwards; the outermost is shown first.
pub(crate) fn of_frames(frame: &Bound<'_, PyAny>) -> String {
    let mut places = Vec::new();
    let mut next = Some(frame.clone());
    while let Some(frame) = next.filter(|frame| !frame.is_none()) {
        if let Ok(line) = frame.getattr("f_lineno") {
            places.extend(place(&frame, &line));
        }
        next = frame.getattr("f_back").ok();
    }
    places.reverse();
    render(&places)
}

/// From a traceback object inwards.
pub(crate) fn of_traceback(traceback: &Bound<'_, PyAny>) -> String {
    render(&places(traceback))
}

fn places(traceback: &Bound<'_, PyAny>) -> Vec<Place> {
    let mut places = Vec::new();
    let mut next = Some(traceback.clone());
    while let Some(traceback) = next.filter(|traceback| !traceback.is_none()) {
        if let (Ok(frame), Ok(line)) = (traceback.getattr("tb_frame"), traceback.getattr("tb_lineno")) {
            places.extend(place(&frame, &line));
        }
        next = traceback.getattr("tb_next").ok();
    }
    places
}

fn place(frame: &Bound<'_, PyAny>, line: &Bound<'_, PyAny>) -> Option<Place> {
    let code = frame.getattr("f_code").ok()?;
    let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
    if file != FILE {
        return None;
    }
    let name: String = code.getattr("co_name").ok()?.extract().ok()?;
    Some(Place { line: line.extract().unwrap_or(0), name })
}

fn render(places: &[Place]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let mut text = "Traceback (most recent call last):\n".to_owned();
    for (index, place) in places.iter().enumerate() {
        if index >= SHOWN && index + SHOWN < places.len() {
            if index == SHOWN {
                text.push_str(&format!("  ... {} more\n", places.len() - 2 * SHOWN));
            }
            continue;
        }
        text.push_str(&format!("  File \"{FILE}\", line {}, in {}\n", place.line, place.name));
        let source = SOURCE.get().and_then(|lines| lines.get(place.line.checked_sub(1)?));
        if let Some(source) = source.map(|line| line.trim()).filter(|line| !line.is_empty()) {
            let short: String = source.chars().take(WIDEST).collect();
            text.push_str(&format!("    {short}\n"));
        }
    }
    text
}
