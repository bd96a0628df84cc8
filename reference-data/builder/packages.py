"""The packages that the data comes from, fetched by the ordinary clients and checked against their digests."""

import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A published file, pinned: its name as downloaded, its digest and the command that fetches it."""

    file: str
    sha256: str
    command: tuple


_PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")

NETWORKS = Package(
    "mcc_mnc_p1-1.1.0-py3-none-any.whl",
    "1d5475184cf7dee569fe970798b987a1c8c01a8ff36a2c799ff295149e8d6762",
    (*_PIP, "mcc-mnc-p1==1.1.0"),
)
NETWORKS_MEMBER = "mcc_mnc_genlib/raw/wikip_mnc.json"
STATUSES = Package(
    "mcc-mnc-list-1.1.11.tgz",
    "2bebd40ae0d4912968c4facafd963482ca8268dfcc7c8687bcfc0738e3468420",
    ("npm", "pack", "--silent", "mcc-mnc-list@1.1.11"),
)
STATUSES_MEMBER = "package/mcc-mnc-list.json"
NUMBERS = Package(
    "phonenumbers-9.0.43-py2.py3-none-any.whl",
    "349bc799f15e010e35bd2c7d28149950ae74479cb1e11fb054ed9a95ecb4b437",
    (*_PIP, "phonenumbers==9.0.43"),
)
NUMBERS_LICENCE = "phonenumbers-9.0.43.dist-info/licenses/LICENSE"


@dataclass(frozen=True)
class Sources:
    """What the packages hold, read."""

    wikipedia: list
    overlay: list
    phonenumbers: object
    carrier_data: dict
    apache_licence: str


def fetch(folder):
    """Downloads the packages into a folder, checks them and reads what is used of them."""
    for package in (NETWORKS, STATUSES, NUMBERS):
        _download(package, folder)
    with zipfile.ZipFile(folder / NETWORKS.file) as wheel:
        wikipedia = json.loads(wheel.read(NETWORKS_MEMBER))
    with tarfile.open(folder / STATUSES.file) as archive:
        overlay = json.load(archive.extractfile(STATUSES_MEMBER))
    with zipfile.ZipFile(folder / NUMBERS.file) as wheel:
        licence = wheel.read(NUMBERS_LICENCE).decode()
        wheel.extractall(folder / "numbers")
    sys.path.insert(0, str(folder / "numbers"))
    import phonenumbers
    from phonenumbers.carrierdata import CARRIER_DATA

    return Sources(wikipedia, overlay, phonenumbers, CARRIER_DATA, licence)


def _download(package, folder):
    subprocess.run(package.command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    found = hashlib.sha256((folder / package.file).read_bytes()).hexdigest()
    if found != package.sha256:
        raise SystemExit(f"{package.file}: the digest is {found}, pinned is {package.sha256}")
