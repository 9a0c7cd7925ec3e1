//! The search path of a Pod's resolver, walked by the server: one query instead of one for each entry of the path.
