//! Decides when a stop waits no longer for what was begun: pure.
//!
//! A stop finishes the open transaction: that may be a large merge, or a
//! connector that will never answer. From outside the two differ in one thing
//! only: what is at work calls the host, or is called by it. Giving up loses
//! nothing, since the next session recovers or reads again.

/// How long a connector may show no sign of work, in milliseconds. Whoever sent
/// the signal is waiting; a merge that is silent for longer is done again.
pub(crate) const QUIET_MILLIS_MAX: u64 = 2_000;

/// How long a stop takes at most, in milliseconds: process supervisors kill
/// what takes longer than half a minute, and then nothing is closed in order.
pub(crate) const STOP_MILLIS_MAX: u64 = 28_000;

/// How often a stopping session looks for signs of work, in milliseconds.
pub(crate) const LOOK_MILLIS: u64 = 250;

/// A stop that is under way. Times are monotonic milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopping {
    since: u64,
    heard: u64,
    /// Signs of work that were seen so far.
    signs: u64,
}

impl Stopping {
    pub(crate) fn new(now: u64, signs: u64) -> Stopping {
        Stopping {
            since: now,
            heard: now,
            signs,
        }
    }

    /// Takes in how many signs of work there were by now; says whether to give
    /// up.
    pub(crate) fn look(&mut self, now: u64, signs: u64) -> bool {
        if signs != self.signs {
            self.signs = signs;
            self.heard = now;
        }
        now - self.heard >= QUIET_MILLIS_MAX || now - self.since >= STOP_MILLIS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_waits_for_work_and_not_for_silence() {
        struct Case {
            name: &'static str,
            /// Times and signs of looks.
            looks: Vec<(u64, u64)>,
            want: bool,
        }
        let at_work = |until: u64| (0..=until / 1_000).map(|it| (it * 1_000, it)).collect();
        let cases = [
            Case {
                name: "just asked",
                looks: vec![(0, 7)],
                want: false,
            },
            Case {
                name: "quiet, but not for long",
                looks: vec![(QUIET_MILLIS_MAX - 1, 7)],
                want: false,
            },
            Case {
                name: "quiet from the start",
                looks: vec![(QUIET_MILLIS_MAX, 7)],
                want: true,
            },
            Case {
                name: "quiet after some work",
                looks: vec![(1_000, 8), (1_000 + QUIET_MILLIS_MAX, 8)],
                want: true,
            },
            Case {
                name: "at work",
                looks: at_work(STOP_MILLIS_MAX - 1_000),
                want: false,
            },
            Case {
                name: "at work for too long",
                looks: at_work(STOP_MILLIS_MAX),
                want: true,
            },
        ];
        for case in cases {
            let mut stopping = Stopping::new(0, 7);
            let mut looks = case.looks.iter();
            let last = looks.next_back().expect("each case looks");
            for (now, signs) in looks {
                assert!(!stopping.look(*now, *signs), "{}: at {now}", case.name);
            }
            assert_eq!(stopping.look(last.0, last.1), case.want, "{}", case.name);
        }
    }
}
