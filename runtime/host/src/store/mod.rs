//! Stores: small values under keys, each with a revision.
