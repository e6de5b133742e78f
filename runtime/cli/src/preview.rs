//! What tasks would do at their destinations, in words.

use std::fmt::Write;

use tidegate_host::Preview;

use crate::error::CliError;

/// Puts a task's preview into lines. Why there is none comes last of all, as the
/// command's error.
pub fn lines(task: &str, preview: &Preview) -> String {
    let mut text = format!("{task}: ");
    text += match preview {
        Err(_) => "not known\n",
        Ok(actions) if actions.is_empty() => "nothing to do\n",
        Ok(_) => "would do\n",
    };
    text += &actions(preview.as_deref().unwrap_or_default());
    text
}

/// Puts statements under the line of their task.
pub fn actions(actions: &[String]) -> String {
    let mut text = String::new();
    for action in actions {
        // A statement may have several lines.
        let action = action.replace('\n', "\n    ");
        writeln!(text, "    {action}").expect("text takes everything");
    }
    text
}

/// Fails if a destination could not be asked.
pub fn previewed(errors: Vec<String>) -> Result<(), CliError> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(CliError::user(errors.join("\nerror: "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_are_lines() {
        let of = |actions: &[&str]| Ok(actions.iter().map(|it| (*it).to_owned()).collect());
        let cases = [
            (of(&[]), "a/b: nothing to do\n"),
            (
                of(&["DROP x", "CREATE x (\n  y\n)"]),
                "a/b: would do\n    DROP x\n    CREATE x (\n      y\n    )\n",
            ),
            (Err("it is away".to_owned()), "a/b: not known\n"),
        ];
        for (preview, want) in cases {
            assert_eq!(lines("a/b", &preview), want);
        }
        assert!(previewed(Vec::new()).is_ok());
        let failed = previewed(vec!["one".to_owned(), "two".to_owned()]).unwrap_err();
        assert_eq!(failed.to_string(), "error: one\nerror: two");
    }
}
