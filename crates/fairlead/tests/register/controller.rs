//! The controller that looks at hand-made slices, and removes registrations nobody keeps.
