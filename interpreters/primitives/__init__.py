"""The rows: one file per subject, each row's rules standing together."""
