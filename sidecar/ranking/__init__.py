"""From a checked request to a packet: gates, scores, reserved slots, packing, and why a memory was missed."""
