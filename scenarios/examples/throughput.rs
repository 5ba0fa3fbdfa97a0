fn main() {
    let mut deployment = closer_scenarios::Deployment::default();
    let n = 300;
    for i in 0..n { deployment = deployment.with_obligation(&format!("o-{i}"), "service-a"); }
    deployment.founding.profile.limits.fan_out_max = 10_000;
    let mut space = closer_scenarios::Space::found(&deployment, closer_scenarios::worker::proposes("basic")).unwrap();
    space.event("service-a", "price").unwrap();
    let before = space.records().len();
    let t = std::time::Instant::now();
    space.run().unwrap();
    let d = t.elapsed();
    println!("{} actions in {:?}: {:?} each; {} records, {} refusals", space.world.effects().len(), d, d / n, space.records().len() - before, space.view().refusals);
    let bytes: usize = space.records().iter().map(|r| r.body.as_ref().map_or(0, |b| b.len())).sum();
    println!("{} bytes per action", bytes / n as usize);
    let t = std::time::Instant::now();
    let view = space.replay().unwrap();
    println!("replay {} records in {:?}; same {}", space.records().len(), t.elapsed(), view.state.reference() == space.view().state.reference());
}
