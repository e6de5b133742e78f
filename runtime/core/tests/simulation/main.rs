//! Whole tasks, simulated: leaders that crash, stop and change, over shards,
//! a store, journals and a destination that do what they are told, in any
//! order.
//!
//! ```text
//! script (random) -> world: session, IO in flight, durable things
//!                      |
//!                      +-> after every action: the invariants
//!                      +-> at the end: caught up, each document exactly once
//! ```
//!
//! Time is virtual, and a failing script is printed, shrunk.

mod destination;
mod model;
mod session;
mod world;

use proptest::prelude::*;

use world::{Config, Op, World};

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..64usize).prop_map(Op::Deliver),
        3 => (0..64usize).prop_map(Op::Perform),
        4 => (1..20u64).prop_map(Op::Report),
        3 => (0..3usize, 1..30u64).prop_map(|(journal, documents)| Op::Append { journal, documents }),
        3 => (1..40_000u64).prop_map(Op::Advance),
        1 => (-100_000_000..100_000_000i64).prop_map(Op::JumpWallClock),
        2 => any::<bool>().prop_map(|through_head| Op::Poke { through_head }),
        1 => (0..8usize).prop_map(Op::HangUp),
        1 => Just(Op::Stop),
        1 => (0..3usize, any::<bool>()).prop_map(|(backfill, split)| Op::ChangeSpec { backfill, split }),
        2 => Just(Op::Crash),
    ]
}

/// Ops of which every other one is a call, or something that a call meets.
fn any_op_around_calls() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => any::<bool>().prop_map(|through_head| Op::Poke { through_head }),
        6 => any_op(),
    ]
}

fn any_config() -> impl Strategy<Value = Config> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let every = || prop_oneof![Just(None), (1_000..7_200_000i64).prop_map(Some)];
    let ceiling = prop_oneof![Just(u64::MAX), 1..60u64];
    (flags, every(), every(), ceiling).prop_map(
        |((remote, split, triggers), hold_every, pace_every, documents_max)| Config {
            remote,
            split,
            triggers,
            hold_every,
            pace_every,
            documents_max,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_loses_or_doubles_a_document(
        config in any_config(),
        script in proptest::collection::vec(any_op(), 0..160),
    ) {
        let mut world = World::new(config);
        for op in script {
            world.run(op);
        }
        world.settle();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100_000, max_shrink_iters: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each call is told what the reference model says, and done only when what
    /// it was promised is in the destination.
    #[test]
    fn calls_meet_what_the_model_says(
        config in any_config(),
        script in proptest::collection::vec(any_op_around_calls(), 0..24),
    ) {
        let mut world = World::new(config);
        for op in script {
            world.run(op);
        }
    }
}

/// A crash at every single point of a few transactions, effects done or not.
#[test]
fn a_crash_at_any_point_of_a_transaction_is_recovered() {
    for remote in [true, false] {
        for split in [true, false] {
            for performed in 0..60 {
                for delivered in [true, false] {
                    let mut world = World::new(Config {
                        remote,
                        split,
                        triggers: true,
                        hold_every: None,
                        pace_every: None,
                        documents_max: u64::MAX,
                    });
                    world.run(Op::Append {
                        journal: 0,
                        documents: 9,
                    });
                    world.run(Op::Append {
                        journal: 1,
                        documents: 9,
                    });
                    for _ in 0..performed {
                        world.run(Op::Report(5));
                        world.run(Op::Deliver(0));
                    }
                    if !delivered {
                        world.run(Op::Perform(0));
                    }
                    world.run(Op::Crash);
                    world.settle();
                }
            }
        }
    }
}
