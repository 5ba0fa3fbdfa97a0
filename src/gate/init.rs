//! A deployment for the servers that a client is configured with.
