//! Behaviour of the house: what is admitted, what is kept, what is answered again.

mod admission;
mod calls;
mod fixture;
