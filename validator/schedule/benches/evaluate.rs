//! Instants a second that schedules evaluate, over a year's hours.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use std::hint::black_box;
use tidegate_schedule::CompiledSchedule;

const FIRST: i64 = 1_767_225_600_000; // 2026-01-01T00:00:00Z
const HOUR: i64 = 3_600_000;
const HOURS: i64 = 365 * 24;

fn evaluate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("evaluate");
    group.throughput(Throughput::Elements(HOURS.unsigned_abs()));
    for (name, schedule) in [
        ("interval", json!({"baseInterval": "15m"})),
        (
            "windows",
            json!({
                "baseInterval": "4h",
                "timezone": "Europe/Berlin",
                "windows": [
                    {"interval": "15m", "start": "09:00", "end": "17:00", "days": ["Mon", "Tue", "Wed", "Thu", "Fri"]},
                    {"interval": "1h", "start": "22:00", "end": "02:00"},
                ],
            }),
        ),
        (
            "cron",
            json!({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}),
        ),
        (
            "cron, either day field",
            json!({"cron": "0 2 1,15 * 5", "timezone": "Europe/Berlin"}),
        ),
    ] {
        let schedule = CompiledSchedule::parse(&schedule).expect("the schedule reads");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for hour in 0..HOURS {
                    black_box(schedule.next_fire_millis(black_box(FIRST + hour * HOUR + 17), 42));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, evaluate);
criterion_main!(benches);
