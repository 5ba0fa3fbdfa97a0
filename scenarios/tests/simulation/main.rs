//! Seeded runs of the pure core. `CLOSER_SEEDS` says how many, `CLOSER_STEPS` how long, `CLOSER_SEED` replays one.

#[cfg(test)]
mod seeds {
    use closer_scenarios::simulate::{Summary, run};

    /// A number from the environment.
    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    #[test]
    fn what_must_always_hold_holds_under_every_seed() {
        let steps = usize::try_from(number("CLOSER_STEPS").unwrap_or(400)).unwrap();
        let only = number("CLOSER_SEED");
        let seeds = only.map_or(0..number("CLOSER_SEEDS").unwrap_or(20), |seed| seed..seed + 1);
        let mut violations = Vec::new();
        let mut total = [0; 5];
        for seed in seeds {
            match run(seed, steps) {
                Ok(summary) => {
                    let Summary { records, effects, attempts, refusals, closed, digest } = summary;
                    println!(
                        "seed {seed}: {records} records, {attempts} attempts, {effects} effects, {refusals} refusals, {closed} closed, {digest}"
                    );
                    let refusals = usize::try_from(refusals).unwrap();
                    for (sum, one) in total.iter_mut().zip([records, effects, attempts, refusals, closed]) {
                        *sum += one;
                    }
                }
                Err(violation) => violations.push(violation.to_string()),
            }
        }
        assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
        assert!(only.is_some() || total.iter().all(|sum| *sum > 0), "nothing happened: {total:?}");
    }

    #[test]
    fn the_same_seed_makes_the_same_records() {
        assert_eq!(run(7, 300).unwrap(), run(7, 300).unwrap());
        assert_ne!(run(7, 300).unwrap().digest, run(8, 300).unwrap().digest);
    }
}
