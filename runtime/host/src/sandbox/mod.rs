//! The sandbox that connectors run in.
