//! Every zone, hour by hour, for two years: always strictly after, never past the start of a faster regime, and cron
//! once a day.

use chrono::{NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike};
use chrono_tz::{TZ_VARIANTS, Tz};
use serde_json::json;
use tidegate_schedule::CompiledSchedule;

const MINUTE: i64 = 60_000;
const QUARTER: i64 = 15 * MINUTE;
const HOUR: i64 = 60 * MINUTE;

/// Unoptimised code sweeps one zone out of so many, to keep a test run short while one works on it.
const ZONES_STRIDE: usize = if cfg!(debug_assertions) { 25 } else { 1 };

const FIRST: i64 = 1_767_225_600_000; // 2026-01-01T00:00:00Z
const DAYS: i64 = 730;
const LAST: i64 = FIRST + DAYS * 24 * HOUR;

fn local(tz: Tz, at: i64) -> NaiveDateTime {
    let instant = chrono::DateTime::from_timestamp_millis(at)
        .expect("an instant")
        .naive_utc();
    instant + tz.offset_from_utc_datetime(&instant).fix()
}

/// Returns for every quarter of an hour whether a window is open by a clock that never goes back.
///
/// Quarters are enough: no zone has been off UTC, or has changed its clock, by less since 2026.
fn open_quarters(tz: Tz, start: u32, end: u32) -> Vec<bool> {
    let mut furthest = local(tz, FIRST - 24 * HOUR);
    let quarters = (LAST - FIRST) / QUARTER + 4 * 24;
    let is_open = |quarter| {
        furthest = furthest.max(local(tz, FIRST + quarter * QUARTER));
        let minute = furthest.hour() * 60 + furthest.minute();
        if start < end {
            (start..end).contains(&minute)
        } else {
            minute >= start || minute < end
        }
    };
    (0..quarters).map(is_open).collect()
}

#[test]
fn windows_keep_their_order_in_every_zone() {
    // Clocks change at midnight and in the first hours after it.
    const WINDOWS: [(u32, u32); 3] = [(135, 300), (1_380, 75), (0, 60)];
    let clock = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
    for (index, tz) in TZ_VARIANTS.into_iter().enumerate().step_by(ZONES_STRIDE) {
        let (start, end) = WINDOWS[index % WINDOWS.len()];
        let schedule = json!({
            "baseInterval": "4h",
            "timezone": tz.name(),
            "windows": [{"interval": "7m", "start": clock(start), "end": clock(end)}],
        });
        let compiled = CompiledSchedule::parse(&schedule).expect("the schedule reads");
        let open = open_quarters(tz, start, end);
        let opens_at = |quarter: &usize| open[*quarter] && !open[quarter - 1];
        let instant = |quarter: usize| FIRST + i64::try_from(quarter).expect("small") * QUARTER;
        let openings: Vec<i64> = (1..open.len()).filter(opens_at).map(instant).collect();

        for hour in 0..DAYS * 24 {
            // Off the hour, so that grid and bounds are met from within.
            let at = FIRST + hour * HOUR + 1_234;
            let fire = compiled
                .next_fire_millis(at, 5)
                .expect("every regime holds");
            let opening = openings[openings.partition_point(|opening| *opening <= at)];
            let is_open = open[usize::try_from(hour * 4).expect("small")];
            let latest = if is_open {
                at + 7 * MINUTE
            } else {
                opening.min(at + 4 * HOUR)
            };
            assert!(
                at < fire && fire <= latest,
                "{schedule} after {at} fires at {fire}, and {latest} is the latest"
            );
        }
    }
}

#[test]
fn cron_fires_once_a_day_in_every_zone() {
    const TIMES: [(u32, u32); 3] = [(0, 0), (1, 30), (2, 15)];
    for (index, tz) in TZ_VARIANTS.into_iter().enumerate().step_by(ZONES_STRIDE) {
        let (hour, minute) = TIMES[index % TIMES.len()];
        let schedule = json!({"cron": format!("{minute} {hour} * * *"), "timezone": tz.name()});
        let compiled = CompiledSchedule::parse(&schedule).expect("the cron reads");
        let mut fires = Vec::new();
        for hour in 0..DAYS * 24 {
            let at = FIRST + hour * HOUR;
            let fire = compiled
                .next_fire_millis(at, 0)
                .expect("there is always a next day");
            assert!(
                at < fire && fire <= at + 26 * HOUR,
                "{schedule} after {at} fires at {fire}"
            );
            fires.push(fire);
        }
        // Hours that wait for one fire agree on it, in the second pass of a fold as well.
        fires.dedup();
        let dates: Vec<NaiveDate> = fires.iter().map(|fire| local(tz, *fire).date()).collect();
        for pair in dates.windows(2) {
            assert_eq!(pair[0].succ_opt(), Some(pair[1]), "{schedule}");
        }
        assert!(
            (DAYS..=DAYS + 1).contains(&(dates.len() as i64)),
            "{schedule}: {} fires",
            dates.len()
        );
    }
}
