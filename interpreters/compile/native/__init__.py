"""From Programs to what the native backends take: array nodes without primitives."""
