"""Speed, measured as ratios within one run: real servers, the client in another process, interleaved blocks."""
