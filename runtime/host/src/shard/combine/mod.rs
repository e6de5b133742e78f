//! The combiner: documents in, one reduced document a key out, in key order.
