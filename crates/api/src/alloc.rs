//! Which cluster IP and which node port a Service gets: bands, random picks, what is taken and what is freed.
