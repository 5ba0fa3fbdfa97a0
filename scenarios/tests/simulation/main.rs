//! A fixed set of simulated runs, short enough for every change. `cargo xtask sim` runs as many and as long as asked.

#[cfg(test)]
mod seeds {
    use closer_scenarios::simulate::{Plan, Summary, run, run_plan};
    use std::path::Path;

    /// Seeds of the fixed set, from 0 on.
    const SEEDS: u64 = 8;
    /// Steps of each.
    const STEPS: usize = 250;

    #[test]
    fn what_must_always_hold_holds_under_every_seed() {
        let mut total = [0; 5];
        for seed in 0..SEEDS {
            let summary = run(seed, STEPS).unwrap_or_else(|violation| panic!("{violation}"));
            let Summary { effects, attempts, refusals, closed, restarts, .. } = summary;
            let refusals = usize::try_from(refusals).unwrap();
            for (sum, one) in total.iter_mut().zip([effects, attempts, refusals, closed, restarts]) {
                *sum += one;
            }
        }
        assert!(total.iter().all(|sum| *sum > 0), "nothing happened: {total:?}");
    }

    #[test]
    fn the_same_seed_makes_the_same_records() {
        assert_eq!(run(7, 200).unwrap(), run(7, 200).unwrap());
        assert_ne!(run(7, 200).unwrap().digest, run(8, 200).unwrap().digest);
    }

    #[test]
    fn a_plan_is_kept_as_it_is() {
        let plan = Plan::of(3, 40);
        let text = plan.kept("nothing");
        assert_eq!(Plan::read(&text).unwrap(), plan, "{text}");
        assert!(Plan::read("seed = 1\nobligations = 2\nfound = \"\"\nsteps = [\"jump 1\"]\n").is_err());
    }

    /// Plans that once broke something.
    #[test]
    fn what_was_found_once_holds_now() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let plan = Plan::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
            run_plan(&plan).unwrap_or_else(|violation| panic!("{}: {violation}", path.display()));
        }
    }
}
