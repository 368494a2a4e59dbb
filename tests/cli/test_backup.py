"""Backups, restores and checks from the command line, with a server and without."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli.connection import Connection
from sidecar.cli.demo_server import running_server, temporary_folder
from sidecar.cli.failures import ExitCode
from sidecar.cli.group import cli
from sidecar.store.store import Store
from tests.cli.conftest import Run

NOWHERE = "unix:/nonexistent/memory-ranker.sock"


def command(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments], prog_name="memory-ranker")


def test_a_server_is_backed_up_while_it_serves_and_restored_elsewhere(
    run: Run, server: Connection, folder: Path, tmp_path: Path
) -> None:
    """The server writes the copy; a server on the restored folder ranks as the first one does."""
    run("put", "Deploys need a green canary", "--id", "canary")
    packet = json.loads(run("rank", "deploy", "--json").stdout)
    backed_up = run("backup", "copy", "--json")
    assert backed_up.exit_code == 0, backed_up.output
    found = json.loads(backed_up.stdout)
    assert found["path"] == str(tmp_path / "copy")
    assert found["byte_count"] == (tmp_path / "copy" / "memories.db").stat().st_size
    with temporary_folder(keep=False) as other:
        restored = run("restore", "copy", "--data", str(other / "store"))
        assert restored.exit_code == 0, restored.output
        assert f"to {other / 'store'}" in restored.stdout
        with running_server(other) as second:
            again = run("rank", "deploy", "--address", second.address, "--as-of", packet["as_of_time"], "--json")
            ranked = [(item["memory"]["id"], item["score"]) for item in json.loads(again.stdout)["items"]]
            assert ranked == [(item["memory"]["id"], item["score"]) for item in packet["items"]]
            locked = run("restore", "copy", "--data", str(other / "store"))
            assert locked.exit_code == ExitCode.TAKEN


def test_without_a_server_the_store_is_copied_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no server answers, the command takes the lock itself: of the settings' store, or of the one named; never
    when the server was named on the command line."""
    with Store.open(tmp_path / "data") as store:
        store.upsert("n", [("a", {"content": "x", "tokens": 1})], 1)
        monkeypatch.setenv("MEMORY_RANKER_LISTEN", NOWHERE)
        monkeypatch.setenv("MEMORY_RANKER_DATA", str(tmp_path / "data"))
        assert command("backup", tmp_path / "taken").exit_code == ExitCode.TAKEN
    assert command("backup", tmp_path / "one").exit_code == 0
    assert command("backup", tmp_path / "two", "--data", tmp_path / "data").exit_code == 0
    assert command("backup", tmp_path / "three", "--address", NOWHERE).exit_code == ExitCode.UNAVAILABLE
    nothing = command("backup", tmp_path / "four", "--data", tmp_path / "nothing")
    assert (nothing.exit_code, "no store in" in nothing.stderr) == (ExitCode.NOT_FOUND, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "one", "two"]


def test_a_path_that_cannot_be_used_is_refused(run: Run, tmp_path: Path) -> None:
    """A folder with something in it is refused by the server, in its words, and is not touched."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    result = run("backup", "full", "--json")
    assert result.exit_code == ExitCode.REFUSED
    assert json.loads(result.stderr)["error"]["violations"][0]["field"] == "path"


def test_a_check_says_what_is_wrong_and_repairs_it(tmp_path: Path) -> None:
    """Code 0 for a sound store, 8 for one with findings, 0 again after a repair; the JSON has the same."""
    data = tmp_path / "data"
    with Store.open(data) as store:
        store.upsert("n", [("a", {"content": "x", "tokens": 1})], 1)
    sound = command("check", "--data", data)
    assert (sound.exit_code, "Nothing is wrong. Rows looked at" in sound.stdout) == (0, True)
    with contextlib.closing(sqlite3.connect(data / "memories.db")) as connection:
        connection.execute("UPDATE namespaces SET memory_count = 7")
        connection.commit()
    wrong = command("check", "--data", data)
    assert wrong.exit_code == ExitCode.DAMAGED
    assert "counts" in wrong.stdout
    assert "says 7, holds 1" in wrong.stdout
    repaired = command("check", "--data", data, "--repair", "--json")
    assert repaired.exit_code == 0
    found = json.loads(repaired.stdout)
    assert [each["fault"] for each in found["findings"]] == ["counts"]
    assert found["after_repair"]["findings"] == []


def test_what_can_be_read_is_saved_into_another_folder(tmp_path: Path) -> None:
    """A database with a damaged page is not repaired in place; --into makes a sound one of what is left."""
    data = tmp_path / "data"
    with Store.open(data) as store:
        store.upsert("n", [(f"m{i}", {"content": "text " * 200, "tokens": 1}) for i in range(200)], 1)
    with (data / "memories.db").open("r+b") as file:
        file.seek(4096 * 40)
        file.write(bytes(4096))
    refused = command("check", "--data", data, "--repair")
    assert refused.exit_code == ExitCode.DAMAGED
    assert "--into" in refused.stderr
    saved = command("check", "--data", data, "--repair", "--into", tmp_path / "saved", "--json")
    assert saved.exit_code == 0, saved.output
    assert 190 < json.loads(saved.stdout)["saved_rows"]["memories"] <= 200
    with Store.open(tmp_path / "saved") as store:
        assert store.get("n", "m0").content == "text " * 200


def test_a_refused_restore_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a folder nor a lock; and each target that cannot be is told as what it is."""
    with Store.open(tmp_path / "data") as store:
        store.backup(tmp_path / "backup", 1)
    (tmp_path / "afile").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    monkeypatch.chdir(tmp_path / "full")
    file = command("restore", tmp_path / "backup", "--data", tmp_path / "afile")
    assert file.exit_code == ExitCode.UNAVAILABLE
    assert f"{tmp_path / 'afile'} is a file; name a folder with --data" in file.stderr
    empty = command("restore", tmp_path / "backup", "--data", "")
    assert (empty.exit_code, "is empty: name a folder" in empty.stderr) == (ExitCode.USAGE, True)
    for target in ("full", "data"):
        refused = command("restore", tmp_path / "backup", "--data", tmp_path / target)
        assert (refused.exit_code, "is not empty" in refused.stderr) == (ExitCode.REFUSED, True)
    with (tmp_path / "backup" / "memories.db").open("ab") as database:
        database.write(b"?")
    (tmp_path / "there").mkdir()
    for target in ("new", "there"):
        damaged = command("restore", tmp_path / "backup", "--data", tmp_path / target)
        assert damaged.exit_code == ExitCode.DAMAGED
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["x"]
    assert list((tmp_path / "there").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["afile", "backup", "data", "full", "there"]


def test_of_an_empty_database_nothing_can_be_saved(tmp_path: Path) -> None:
    """Which is told in a line, and no folder is made."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "memories.db").touch()
    result = command("check", "--data", tmp_path / "data", "--repair", "--into", tmp_path / "saved")
    assert result.exit_code == ExitCode.DAMAGED
    assert "memories.db is empty, so nothing can be saved; restore a backup" in result.stderr
    assert not (tmp_path / "saved").exists()


def test_a_damaged_backup_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    """A script can tell it from a wrong command line."""
    (tmp_path / "backup").mkdir()
    result = command("restore", tmp_path / "backup", "--data", tmp_path / "new")
    assert result.exit_code == ExitCode.DAMAGED
    assert "STORE_DAMAGED" in result.stderr
    assert command("check", "--into", "x").exit_code == ExitCode.USAGE
    assert command("check", "--data", tmp_path / "nowhere").exit_code == ExitCode.NOT_FOUND
