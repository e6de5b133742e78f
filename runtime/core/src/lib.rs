//! runtime/core
