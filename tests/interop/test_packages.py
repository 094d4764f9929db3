"""What is installed for these tests is pinned, and comes from whatever registry one uses."""

import json

from tests.interop.node import HERE


def test_the_lock_file_pins_every_package_and_names_no_registry():
    locked = json.loads((HERE / "package-lock.json").read_text())["packages"]
    del locked[""]

    assert locked
    for path, package in locked.items():
        assert package["integrity"].startswith("sha512-"), path
        assert "resolved" not in package, path
