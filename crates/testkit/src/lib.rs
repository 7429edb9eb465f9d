//! Scripts and replays for testing workflows without a server.
