//! Tests of accepted state, one file per behaviour, over one small space.

mod cascade;
mod closing;
mod fixtures;
mod merkle;
mod obligations;
mod parents;
mod properties;
mod rebase;
mod receipts;
mod replay;
mod support;
mod urgent;
