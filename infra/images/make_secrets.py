"""Write the env files with passwords and keys that docker-compose.yml reads; once, into `.run/compose`."""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".run/compose"


def files() -> dict[str, dict[str, str]]:
    """Every service gets a file with what it needs, and no more."""
    database, token = secrets.token_hex(16), secrets.token_hex(32)
    return {
        "postgres.env": {"POSTGRES_USER": "airflow", "POSTGRES_DB": "airflow", "POSTGRES_PASSWORD": database},
        "spark.env": {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token},
        "airflow.env": {
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://airflow:{database}@postgres/airflow",
            "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "CLICKJOIN_AIRFLOW_PASSWORD": secrets.token_urlsafe(12),
        },
    }


def main(folder: Path = FOLDER) -> int:
    """Write the files, unless they are there: the database keeps the password that it was made with."""
    if (folder / "airflow.env").exists():
        print(f"secrets are in {folder}")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for name, values in files().items():
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.writelines(f"{key}={value}\n" for key, value in values.items())
    print(f"secrets written to {folder}; the UI's user is admin, its password is in airflow.env")
    return 0


if __name__ == "__main__":
    sys.exit(main())
