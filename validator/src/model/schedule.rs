//! The `syncSchedule` of a materialization.

use super::fields::{Context, Field};
use crate::diagnostic::{Code, Spot};
use crate::load::join;
use serde_json::Value;
use tidegate_schedule::CompiledSchedule;

/// A schedule as it is written, and what it means if it can be read.
#[derive(Debug, Clone)]
pub(crate) struct WrittenSchedule {
    pub(crate) value: Value,
    /// The place of its key.
    pub(crate) spot: Spot,
    /// The place of its cron expression, if it has one.
    pub(crate) cron_spot: Option<Spot>,
    pub(crate) compiled: Option<CompiledSchedule>,
}

impl Context<'_, '_> {
    pub(crate) fn sync_schedule(&mut self, field: &Field<'_>) -> WrittenSchedule {
        let value = field.node.to_value();
        let compiled = match CompiledSchedule::parse(&value) {
            Ok(compiled) => Some(compiled),
            Err(error) => {
                for problem in error.into_problems() {
                    let at = field.node.nearest(&problem.pointer);
                    let spot = Spot::new(format!("{}{}", field.pointer, problem.pointer), at.span);
                    let message = match &problem.value {
                        Some(value) if !field.node.is_object() || !problem.pointer.is_empty() => {
                            format!("{} (found {value})", problem.message)
                        }
                        _ => problem.message,
                    };
                    self.add(Code::ScheduleInvalid, &spot, message)
                        .help(problem.fix);
                }
                None
            }
        };
        WrittenSchedule {
            value,
            spot: field.key_spot(),
            cron_spot: field.node.get("cron").map(|node| {
                let pointer = join(&field.pointer, "cron");
                Spot::new(pointer, node.span)
            }),
            compiled,
        }
    }
}
