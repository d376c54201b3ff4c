//! Behaviour of everything that talks to other processes.

mod plugin;
