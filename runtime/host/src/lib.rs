//! runtime/host
