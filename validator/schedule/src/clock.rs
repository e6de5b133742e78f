//! Times of day and days of the week, as both kinds of schedule write them.

/// A local time of day, to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockTime {
    minute_of_day: u32,
}

impl ClockTime {
    /// Reads `HH:MM`, or `H:MM`; `None` for anything else, `24:00` included.
    pub fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        // `u32::from_str` alone would take a sign.
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !(1..=2).contains(&hour.len()) || minute.len() != 2 || !digits(hour) || !digits(minute) {
            return None;
        }
        let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour <= 23 && minute <= 59).then_some(Self {
            minute_of_day: hour * 60 + minute,
        })
    }

    /// Returns the minutes since local midnight.
    pub fn minute_of_day(self) -> u32 {
        self.minute_of_day
    }

    /// Says how to write the time of day that `text` seems to mean.
    pub(crate) fn advice(text: &str) -> String {
        let text = text.trim();
        if text == "24:00" {
            return "the end of a day is written \"00:00\"".to_owned();
        }
        // "09:00:00" and " 09:00" are a time of day with something too much.
        let shorter = text.rsplit_once(':').map(|(head, _)| head);
        match [Some(text), shorter]
            .into_iter()
            .flatten()
            .find_map(Self::parse)
        {
            Some(time) => format!("write \"{time}\""),
            None => "write hours and minutes from \"00:00\" to \"23:59\"".to_owned(),
        }
    }
}

impl std::fmt::Display for ClockTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:02}:{:02}",
            self.minute_of_day / 60,
            self.minute_of_day % 60
        )
    }
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl Day {
    /// All days, from Monday.
    pub const ALL: [Self; 7] = [
        Self::Mon,
        Self::Tue,
        Self::Wed,
        Self::Thu,
        Self::Fri,
        Self::Sat,
        Self::Sun,
    ];

    /// Reads `Mon` or `Monday`, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|day| {
            let long = day.long_name();
            text.eq_ignore_ascii_case(long) || text.eq_ignore_ascii_case(&long[..3])
        })
    }

    /// Returns the days since Monday.
    pub fn index(self) -> usize {
        self as usize
    }

    fn long_name(self) -> &'static str {
        match self {
            Self::Mon => "Monday",
            Self::Tue => "Tuesday",
            Self::Wed => "Wednesday",
            Self::Thu => "Thursday",
            Self::Fri => "Friday",
            Self::Sat => "Saturday",
            Self::Sun => "Sunday",
        }
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.long_name()[..3])
    }
}

/// A set of days of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DaySet {
    enabled: [bool; 7],
}

impl DaySet {
    /// Every day of the week.
    pub const ALL: Self = Self { enabled: [true; 7] };

    /// Adds `day`, and returns whether it is new to the set.
    pub fn insert(&mut self, day: Day) -> bool {
        !std::mem::replace(&mut self.enabled[day.index()], true)
    }

    /// Returns whether `day` is in the set.
    pub fn contains(self, day: Day) -> bool {
        self.enabled[day.index()]
    }

    /// Returns the days of the set, from Monday.
    pub fn iter(self) -> impl Iterator<Item = Day> {
        Day::ALL.into_iter().filter(move |day| self.contains(*day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_times_are_two_fields_in_range() {
        for (text, minutes) in [("00:00", 0), ("9:00", 540), ("09:00", 540), ("23:59", 1439)] {
            assert_eq!(
                ClockTime::parse(text).map(ClockTime::minute_of_day),
                Some(minutes),
                "{text}"
            );
        }
        for text in [
            "", ":", "9", "9:5", "09:5", "009:00", "+9:00", "9:+5", "24:00", "09:60", "09:00:00",
            " 09:00", "٩:00", "9h",
        ] {
            assert_eq!(ClockTime::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn advice_repeats_the_time_that_was_meant() {
        assert_eq!(
            ClockTime::advice("24:00"),
            "the end of a day is written \"00:00\""
        );
        assert_eq!(ClockTime::advice("09:00:00"), "write \"09:00\"");
        assert_eq!(ClockTime::advice(" 9:00"), "write \"09:00\"");
        assert_eq!(
            ClockTime::advice("noon"),
            "write hours and minutes from \"00:00\" to \"23:59\""
        );
    }

    #[test]
    fn days_read_short_and_long() {
        for (text, day) in [
            ("Mon", Day::Mon),
            ("mon", Day::Mon),
            ("TUESDAY", Day::Tue),
            ("Sun", Day::Sun),
        ] {
            assert_eq!(Day::parse(text), Some(day), "{text}");
        }
        for text in ["", "M", "Mond", "Tues", "1", "Mon "] {
            assert_eq!(Day::parse(text), None, "{text:?}");
        }
        let mut days = DaySet::default();
        assert!(days.insert(Day::Fri) && days.insert(Day::Mon) && !days.insert(Day::Fri));
        assert_eq!(
            days.iter().map(|day| day.to_string()).collect::<Vec<_>>(),
            ["Mon", "Fri"]
        );
        assert_eq!(DaySet::ALL.iter().count(), 7);
    }
}
