//! What the monitor says, case by case.

#[cfg(test)]
mod verdicts;
