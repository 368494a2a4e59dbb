"""An agent: it remembers, ranks, uses, and says what it used."""

from memoryranker.client import Client, RankerRpcError

with Client() as client:  # MEMORY_RANKER_LISTEN, else the server's default socket; one client for the whole agent
    try:
        client.upsert("agent-7", [{"id": "canary", "content": "Deploys need a green canary for 30 minutes"}])
        client.ingest("agent-7", ({"id": f"note-{n}", "content": f"Note {n} of the handbook"} for n in range(3)))
        packet = client.rank("agent-7", "deploy the payment service", token_budget=500, timeout=2)
        for item in packet.items:
            print(f"{item.score:.3f}  {item.memory.content}")
        used = [item.memory.id for item in packet.items if "canary" in item.memory.content]
        client.report_use(packet.packet_id, used=used)
    except RankerRpcError as error:
        print(error.reason, error.message, *error.violations, sep="\n  ")
        raise SystemExit(1) from error
