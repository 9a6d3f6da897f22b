//! The mesh as its members see it: raw connections that write bytes, and members of ours.

mod bench;
mod broker;
mod election;
mod folder_lock;
mod fuzz;
mod gateway;
mod hostile;
mod member;
mod rules;
