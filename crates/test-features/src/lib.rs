//! Features of dependencies that the root workspace and `apps/` enable alike in tests.
//!
//! Cargo shares a compiled dependency only between builds that enable the same features of it. This
//! crate has no code: it adds to each workspace the features that only the other one would enable, so
//! that `make test` compiles each dependency once.
