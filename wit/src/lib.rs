//! wit
