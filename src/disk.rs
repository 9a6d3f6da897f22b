//! The few ways files are written: every write is whole or absent, and every error names its path.
