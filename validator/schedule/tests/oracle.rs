//! The evaluator against an oracle that shares nothing with it but the zone database.
//!
//! The oracle walks minutes. It carries the furthest reading that the local clock has shown, reads the regime or the
//! cron fields off that reading, and stops at the first minute that ends a wait. Schedules, zones and instants are
//! random, weighted to the hours about changes of a clock. A run prints its seed; `SCHEDULE_SEED` repeats it.

use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_schedule::CompiledSchedule;

/// Cases of a run. Unoptimised code gets fewer, to keep a test run short while one works on it.
const INTERVAL_CASES: usize = if cfg!(debug_assertions) {
    8_000
} else {
    200_000
};
const CRON_CASES: usize = if cfg!(debug_assertions) {
    1_000
} else {
    20_000
};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
const END: i64 = 4_102_444_800_000;

/// A small generator of random numbers, so that a seed means the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).expect("a size")).expect("a size")
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.below(usize::try_from(high - low).expect("in order")))
            .expect("small")
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'items, T>(&mut self, items: &'items [T]) -> &'items T {
        &items[self.below(items.len())]
    }
}

fn seed() -> u64 {
    let seed = match std::env::var("SCHEDULE_SEED") {
        Ok(text) => text.parse().expect("SCHEDULE_SEED is a number"),
        Err(_) => {
            let now = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .expect("after 1970");
            u64::try_from(now.as_nanos() % u128::from(u64::MAX)).expect("less than its modulus")
        }
    };
    println!("SCHEDULE_SEED={seed}");
    seed
}

fn utc(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(millis).expect("an instant of the calendar")
}

fn local(tz: Tz, millis: i64) -> NaiveDateTime {
    utc(millis).with_timezone(&tz).naive_local()
}

fn offset_seconds(tz: Tz, millis: i64) -> i32 {
    tz.offset_from_utc_datetime(&utc(millis).naive_utc())
        .fix()
        .local_minus_utc()
}

/// A walk over minutes of UTC that carries the furthest reading of the local clock.
struct Walk {
    tz: Tz,
    step: i64,
    at: i64,
    furthest: NaiveDateTime,
}

impl Walk {
    /// Starts at `at`, having looked back over every fold that could still stand there.
    fn new(tz: Tz, at: i64) -> Self {
        let seconds =
            offset_seconds(tz, at - DAY) % 60 != 0 || offset_seconds(tz, at + DAY) % 60 != 0;
        let step = if seconds { MINUTE / 2 } else { MINUTE };
        // Without a change in the last day nothing was read that is not behind.
        let back = if offset_seconds(tz, at - DAY) == offset_seconds(tz, at) {
            0
        } else {
            DAY
        };
        let start = (at - back).div_euclid(step) * step;
        let mut walk = Self {
            tz,
            step,
            at: start,
            furthest: local(tz, start),
        };
        while walk.at + step <= at {
            walk.step();
        }
        walk.furthest = walk.furthest.max(local(tz, at));
        walk
    }

    fn step(&mut self) {
        self.at += self.step;
        self.furthest = self.furthest.max(local(self.tz, self.at));
    }
}

#[derive(Debug)]
struct Window {
    interval: i64,
    start: u32,
    end: u32,
    days: Vec<chrono::Weekday>,
}

impl Window {
    fn is_open(&self, reading: NaiveDateTime) -> bool {
        let minute = reading.hour() * 60 + reading.minute();
        let in_hours = if self.start < self.end {
            (self.start..self.end).contains(&minute)
        } else {
            minute >= self.start || minute < self.end
        };
        in_hours && self.days.contains(&reading.weekday())
    }
}

fn interval_at(base: i64, windows: &[Window], reading: NaiveDateTime) -> i64 {
    windows
        .iter()
        .find(|window| window.is_open(reading))
        .map_or(base, |window| window.interval)
}

fn slow_fire(tz: Tz, base: i64, windows: &[Window], after: i64, seed: u64) -> Option<i64> {
    let jitter = i64::try_from(seed % 86_400).expect("small") * 1_000;
    let mut walk = Walk::new(tz, after);
    let interval = interval_at(base, windows, walk.furthest);
    if interval == 0 {
        return None;
    }
    let since = (after - jitter) % interval;
    let fire = after + if since < 0 { -since } else { interval - since };
    loop {
        walk.step();
        if walk.at >= fire || walk.at >= END {
            return Some(fire).filter(|fire| *fire < END);
        }
        if interval_at(base, windows, walk.furthest) < interval {
            return Some(walk.at);
        }
    }
}

/// Finds changes of a clock from 1970 to 2099, by days and then by minutes.
fn changes(tz: Tz) -> Vec<i64> {
    let mut found = Vec::new();
    let mut before = offset_seconds(tz, 0);
    for day in 1..END / DAY {
        let offset = offset_seconds(tz, day * DAY);
        if offset != before {
            let mut minutes = ((day - 1) * DAY..day * DAY).step_by(60_000);
            let change = minutes.find(|minute| offset_seconds(tz, *minute) != before);
            found.push(change.unwrap_or(day * DAY));
        }
        before = offset;
    }
    found
}

/// Chooses zones a run at a time, as finding the changes of one costs more than a case.
struct Places {
    zones: Vec<(Tz, Vec<i64>)>,
}

impl Places {
    fn new(random: &mut Random, share: usize) -> Self {
        let zones = TZ_VARIANTS
            .iter()
            .filter(|_| random.one_in(share))
            .map(|tz| (*tz, changes(*tz)))
            .collect();
        Self { zones }
    }

    fn choose(&self, random: &mut Random) -> (Tz, i64) {
        let (tz, changes) = random.pick(&self.zones);
        let after = match changes.as_slice() {
            [_, ..] if !random.one_in(5) => {
                let spread = *random.pick(&[3 * 60 * MINUTE, DAY, 8 * DAY]);
                random.pick(changes) + random.between(-spread, spread)
            }
            _ => random.between(0, END),
        };
        // Bounds and fires are whole minutes; to be asked on one, and beside it, is where an edge would show.
        let after = if random.one_in(2) {
            after / MINUTE * MINUTE + random.between(-1, 2)
        } else {
            after
        };
        (*tz, after.clamp(0, END - 1))
    }
}

const MINUTES: [i64; 16] = [
    0, 1, 2, 5, 7, 10, 15, 30, 60, 90, 180, 240, 360, 420, 720, 1440,
];
const RARE_MINUTES: [i64; 3] = [2 * 1440, 7 * 1440, 11 * 1440 + 7];
const DAYS: [chrono::Weekday; 7] = [
    chrono::Weekday::Mon,
    chrono::Weekday::Tue,
    chrono::Weekday::Wed,
    chrono::Weekday::Thu,
    chrono::Weekday::Fri,
    chrono::Weekday::Sat,
    chrono::Weekday::Sun,
];

fn random_interval(random: &mut Random) -> i64 {
    MINUTE
        * if random.one_in(60) {
            *random.pick(&RARE_MINUTES)
        } else {
            *random.pick(&MINUTES)
        }
}

fn random_window(random: &mut Random) -> Window {
    let minute = |random: &mut Random| {
        // Clocks change in the first hours of a day, most of them on quarters.
        let end = if random.one_in(2) { 5 * 60 } else { 24 * 60 };
        let step = *random.pick(&[1, 5, 15, 30, 60]);
        u32::try_from(random.below(end / step) * step).expect("a minute of a day")
    };
    let (start, end) = (minute(random), minute(random));
    let end = if start == end {
        (end + 1) % (24 * 60)
    } else {
        end
    };
    let days = match random.below(3) {
        0 => DAYS.to_vec(),
        1 => vec![*random.pick(&DAYS)],
        _ => DAYS.iter().copied().filter(|_| random.one_in(2)).collect(),
    };
    let days = if days.is_empty() {
        vec![*random.pick(&DAYS)]
    } else {
        days
    };
    Window {
        interval: random_interval(random),
        start,
        end,
        days,
    }
}

fn overlap(one: &Window, other: &Window) -> bool {
    DAYS.iter().any(|day| {
        let on = |window: &Window, minute: u32| {
            let date = chrono::NaiveDate::from_isoywd_opt(2026, 10, *day).expect("a date");
            window.is_open(
                date.and_hms_opt(minute / 60, minute % 60, 0)
                    .expect("a time"),
            )
        };
        // Where two overlap, one of them opens inside the other, at its start or at midnight.
        [0, one.start, other.start]
            .iter()
            .any(|minute| on(one, *minute) && on(other, *minute))
    })
}

fn clock(minute: u32) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

fn as_schedule(tz: Tz, base: i64, windows: &[Window]) -> Value {
    let interval = |millis: i64| format!("{}m", millis / MINUTE);
    let windows: Vec<Value> = windows
        .iter()
        .map(|window| {
            json!({
                "interval": interval(window.interval),
                "start": clock(window.start),
                "end": clock(window.end),
                "days": window.days.iter().map(chrono::Weekday::to_string).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({"baseInterval": interval(base), "timezone": tz.name(), "windows": windows})
}

#[test]
fn interval_schedules_fire_as_a_walk_over_minutes_says() {
    let seed = seed();
    let mut random = Random(seed);
    let places = Places::new(&mut random, if cfg!(debug_assertions) { 20 } else { 1 });
    for case in 0..INTERVAL_CASES / 4 {
        let base = random_interval(&mut random);
        let mut windows: Vec<Window> = Vec::new();
        for _ in 0..random.below(5) {
            let window = random_window(&mut random);
            if !windows.iter().any(|other| overlap(other, &window)) {
                windows.push(window);
            }
        }
        // A schedule is made once for several instants: to find windows that do not overlap costs more than a walk.
        for _ in 0..4 {
            let (tz, after) = places.choose(&mut random);
            let schedule = as_schedule(tz, base, &windows);
            let jitter = if random.one_in(2) { 0 } else { random.next() };
            let fire = CompiledSchedule::parse(&schedule)
                .unwrap_or_else(|error| {
                    panic!("SCHEDULE_SEED={seed} case {case}: {schedule}: {error}")
                })
                .next_fire_millis(after, jitter);
            let want = slow_fire(tz, base, &windows, after, jitter);
            assert_eq!(
                fire.map(utc),
                want.map(utc),
                "SCHEDULE_SEED={seed} case {case}: {schedule} after {} with {jitter}",
                utc(after)
            );
        }
    }
}

/// One field of a random crontab: its text, what it matches, and whether it starts with a star.
struct Field {
    text: String,
    set: BTreeSet<u32>,
}

fn random_field(random: &mut Random, low: u32, high: u32, stars: usize) -> Field {
    let number = |random: &mut Random, low: u32| {
        low + u32::try_from(random.below((high - low + 1) as usize)).expect("small")
    };
    if random.below(10) < stars {
        return Field {
            text: "*".to_owned(),
            set: (low..=high).collect(),
        };
    }
    let (mut text, mut set) = (Vec::new(), BTreeSet::new());
    for part in 0..=random.below(3) {
        match random.below(4) {
            0 if part == 0 => {
                let step = 1 + random.below(high as usize);
                text.push(format!("*/{step}"));
                set.extend((low..=high).step_by(step));
            }
            1 | 2 => {
                let from = number(random, low);
                let to = number(random, from);
                let step = 1 + random.below(4);
                text.push(if step == 1 {
                    format!("{from}-{to}")
                } else {
                    format!("{from}-{to}/{step}")
                });
                set.extend((from..=to).step_by(step));
            }
            _ => {
                let number = number(random, low);
                text.push(number.to_string());
                set.insert(number);
            }
        }
    }
    Field {
        text: text.join(","),
        set,
    }
}

struct Crontab {
    fields: [Field; 5],
}

impl Crontab {
    fn random(random: &mut Random) -> Self {
        let fields = [
            random_field(random, 0, 59, 2),
            random_field(random, 0, 23, 6),
            random_field(random, 1, 31, 6),
            random_field(random, 1, 12, 9),
            random_field(random, 0, 7, 5),
        ];
        Self { fields }
    }

    fn text(&self) -> String {
        self.fields
            .each_ref()
            .map(|field| field.text.as_str())
            .join(" ")
    }

    fn matches(&self, reading: NaiveDateTime) -> bool {
        let [minute, hour, day, month, weekday] = &self.fields;
        let sunday = reading.weekday().num_days_from_sunday();
        let on_weekday = weekday.set.contains(&sunday) || sunday == 0 && weekday.set.contains(&7);
        let on_day = day.set.contains(&reading.day());
        let starred = day.text.starts_with('*') || weekday.text.starts_with('*');
        minute.set.contains(&reading.minute())
            && hour.set.contains(&reading.hour())
            && month.set.contains(&reading.month())
            && if starred {
                on_day && on_weekday
            } else {
                on_day || on_weekday
            }
    }

    /// Walks from `after` to the first minute by which the clock has newly read a match, for `days` at most.
    fn slow_fire(&self, tz: Tz, after: i64, days: i64) -> Option<i64> {
        let mut walk = Walk::new(tz, after);
        let whole_minute = |reading: NaiveDateTime| {
            reading
                - TimeDelta::milliseconds(reading.and_utc().timestamp_millis().rem_euclid(MINUTE))
        };
        let mut read = whole_minute(walk.furthest);
        while walk.at < after + days * DAY && walk.at < END {
            walk.step();
            while read < whole_minute(walk.furthest) {
                read += TimeDelta::minutes(1);
                if self.matches(read) {
                    return Some(walk.at).filter(|fire| *fire < END);
                }
            }
        }
        None
    }
}

#[test]
fn cron_schedules_fire_as_a_walk_over_minutes_says() {
    const WALK_DAYS: i64 = 4;
    let seed = seed();
    let mut random = Random(seed);
    let places = Places::new(&mut random, if cfg!(debug_assertions) { 40 } else { 4 });
    let (mut compared, mut beyond) = (0, 0);
    for case in 0..CRON_CASES {
        let crontab = Crontab::random(&mut random);
        let (tz, after) = places.choose(&mut random);
        let text = crontab.text();
        let Ok(schedule) = CompiledSchedule::parse(&json!({"cron": text, "timezone": tz.name()}))
        else {
            // The only way to be refused is a day that its months do not have.
            assert!(
                crontab.fields[2].set.iter().all(|day| *day > 28),
                "SCHEDULE_SEED={seed} case {case}: {text}"
            );
            continue;
        };
        let fire = schedule.next_fire_millis(after, random.next());
        let what = format!(
            "SCHEDULE_SEED={seed} case {case}: {text} in {tz} after {}",
            utc(after)
        );
        match crontab.slow_fire(tz, after, WALK_DAYS) {
            Some(want) => {
                assert_eq!(fire.map(utc), Some(utc(want)), "{what}");
                compared += 1;
            }
            None => {
                assert!(
                    fire.is_none_or(|fire| fire > after + WALK_DAYS * DAY - MINUTE),
                    "{what}: {fire:?}"
                );
                beyond += 1;
            }
        }
    }
    assert!(
        compared > beyond,
        "most random crontabs fire within days: {compared} did, {beyond} did not"
    );
}
