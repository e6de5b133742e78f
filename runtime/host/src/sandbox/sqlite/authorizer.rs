//! What a guest's SQL may not do: reach another file, load code, weaken
//! durability, or change the process.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Pragmas that only tell something, or only the guest's own file.
const PRAGMAS: &[&str] = &[
    "analysis_limit",
    "application_id",
    "auto_vacuum",
    "case_sensitive_like",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "defer_foreign_keys",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "incremental_vacuum",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "page_count",
    "page_size",
    "quick_check",
    "recursive_triggers",
    "schema_version",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
    "wal_autocheckpoint",
    "wal_checkpoint",
];

/// Pragmas that may be read, and not set: durability, and memory of the
/// host's.
const PRAGMAS_READ: &[&str] = &[
    "cache_size",
    "journal_mode",
    "locking_mode",
    "mmap_size",
    "synchronous",
    "temp_store",
];

/// Decides about one action of a statement that is being prepared.
pub(super) fn authorize(context: AuthContext<'_>) -> Authorization {
    if is_allowed(&context.action) {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

fn is_allowed(action: &AuthAction<'_>) -> bool {
    match action {
        // VACUUM attaches a temporary database without a name.
        AuthAction::Attach { filename } => filename.is_empty(),
        AuthAction::Detach { .. } => false,
        AuthAction::Function { function_name } => {
            !function_name.eq_ignore_ascii_case("load_extension")
        }
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            let name = pragma_name.to_ascii_lowercase();
            PRAGMAS.contains(&&*name) || (pragma_value.is_none() && PRAGMAS_READ.contains(&&*name))
        }
        AuthAction::Unknown { .. } => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_searched() {
        assert!(PRAGMAS.is_sorted() && PRAGMAS_READ.is_sorted());
        assert!(PRAGMAS_READ.iter().all(|name| !PRAGMAS.contains(name)));
    }
}
