//! Fingerprints of model requests, cassettes that record and replay model calls to the byte, and trajectories of runs.
//!
//! This crate knows no market, no tool and no model. It reads and writes the files it is given; it reads no clock, no
//! environment and no random source, so that the same calls give the same bytes.
//!
//! # Record, replay, and a request that changed
//!
//! ```
//! use traderharness_replay::{Cassette, Message, Meta, Player, Recorder, ReplayError, Request, Response};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("day.jsonl");
//! let mut request = Request::new("some-model", "v5");
//! request.messages.push(Message::user("The market opens. 股票 600519 closed at 1,402.00."));
//!
//! // Record two calls.
//! let mut recorder = Recorder::create(&path, Meta { contract_version: "v5".into(), ..Meta::default() })?;
//! let first = Response::new(Message::assistant("I wait.", &[]));
//! recorder.record("main", &request, &first)?;
//! let mut second_request = request.clone();
//! second_request.messages.push(first.message.clone());
//! second_request.messages.push(Message::user("The market closes."));
//! recorder.record("main", &second_request, &Response::new(Message::assistant("Good night.", &[])))?;
//! recorder.finish()?;
//!
//! // The same requests get the same answers.
//! let mut player = Player::new(Cassette::load(&path)?)?;
//! assert_eq!(player.next(&request)?, first);
//! assert_eq!(player.next(&second_request)?.message.content(), Some("Good night."));
//! assert_eq!(player.finish()?, 2);
//!
//! // Another request gets no answer, but the place where it differs.
//! let mut player = Player::new(Cassette::load(&path)?)?;
//! request.messages[0] = Message::user("The market opens. 股票 600519 closed at 1,403.00.");
//! let error = player.next(&request).unwrap_err();
//! let ReplayError::Mismatch { index: 0, differences: Some(differences), .. } = &error else { panic!("{error}") };
//! assert_eq!(differences[0].path, "messages[0].content");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Errors
//!
//! [`RecordingError`]: a file cannot be read or written; names file, line and byte. [`ReplayError`]: a replay cannot go on;
//! it never goes on with another answer.

pub mod audit;
pub mod bundle;
pub mod canonical;
pub mod cassette;
pub mod causes;
pub mod diff;
pub mod error;
pub mod explain;
pub mod export;
mod fingerprint;
mod jsonl;
mod lines;
pub mod migrate;
mod player;
mod recorder;
pub mod redact;
pub mod reference;
pub mod request;
mod rewrite;
pub mod trajectory;

pub use cassette::{Cassette, Meta};
pub use error::{RecordingError, ReplayError};
pub use fingerprint::{Fingerprint, NotAFingerprint};
pub use jsonl::{Place, RECORDING_BYTES, read_up_to};
pub use player::{Player, Replay};
pub use recorder::{Recorder, partial_path};
pub use request::{Message, Request, Response, TokenRecord, ToolCall, Usage};
pub use trajectory::{Record, Trajectory};
