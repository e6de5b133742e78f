//! validator/schedule
