"""What an agent's output says of the memories it rests on. Reports of use are merged and counted in `sidecar.store`."""
