//! Journals: the ordered, durable, append-only logs behind collections.
