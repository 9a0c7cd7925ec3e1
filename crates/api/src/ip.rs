//! IP addresses and ranges as the API writes them: what is valid, what is canonical, what is warned about.
