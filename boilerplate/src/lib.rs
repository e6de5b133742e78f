//! boilerplate
