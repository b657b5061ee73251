"""Write the env files with passwords and keys that docker-compose*.yml read into `.run/compose`, once.

infra/k8s makes its Secrets of the same files, by a kustomization.yaml beside them: kustomize reads no file outside of a
folder that has one.
"""

from __future__ import annotations

import base64
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".run/compose"


def certificate(host: str) -> tuple[str, str]:
    """A new key, and a certificate for a host of the containers' own network, signed by itself: both as PEM."""
    with tempfile.TemporaryDirectory() as folder:
        key, made = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "3650", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
             "-keyout", key, "-out", made],
            check=True, capture_output=True,
        )  # fmt: skip
        return key.read_text(), made.read_text()


def of_spark() -> dict[str, dict[str, str]]:
    """What the server and those who call it need."""
    token = secrets.token_hex(32)
    key, public = certificate("spark")
    return {
        "spark.env": {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token, "CLICKJOIN_TLS_PEM": _line(public + key)},
        "client.env": {
            "AIRFLOW_CONN_CLICKJOIN_SPARK": f"clickjoin://:{token}@spark:15443/?use_ssl=true",
            "CLICKJOIN_SPARK_CONNECT": f"sc://spark:15443/;use_ssl=true;token={token}",  # for the command line
            "CLICKJOIN_TLS_CERTIFICATE": _line(public),
        },
    }


def of_broker() -> dict[str, dict[str, str]]:
    """What Celery and its broker need. Results of tasks go to Airflow's database, whose driver its address names."""
    password = secrets.token_hex(16)
    return {
        "redis.env": {"REDISCLI_AUTH": password},
        "celery.env": {"AIRFLOW__CELERY__BROKER_URL": f"redis://:{password}@redis:6379/0"},
    }


def of_cluster() -> dict[str, dict[str, str]]:
    """What Spark's driver, master and workers know each other by."""
    return {"cluster.env": {"CLICKJOIN_SPARK_SECRET": secrets.token_hex(32)}}


def of_store() -> dict[str, dict[str, str]]:
    """What the S3 server and those who use it need: for a store of your own, write what it gave you into lake.env."""
    key, secret = f"key{secrets.token_hex(8)}", secrets.token_hex(24)
    return {
        "s3.env": {"ROOT_ACCESS_KEY": key, "ROOT_SECRET_KEY": secret},
        "lake.env": {
            "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": "http://s3:7070", "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true",
        },
    }  # fmt: skip


def of_airflow() -> dict[str, dict[str, str]]:
    """What Airflow and its database need."""
    database = secrets.token_hex(16)
    return {
        "postgres.env": {"POSTGRES_USER": "airflow", "POSTGRES_DB": "airflow", "POSTGRES_PASSWORD": database},
        "airflow.env": {
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://airflow:{database}@postgres/airflow",
            "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "CLICKJOIN_AIRFLOW_PASSWORD": secrets.token_urlsafe(12),
        },
    }


# Files that must fit each other, and what makes them.
TOGETHER = {
    ("spark.env", "client.env"): of_spark,
    ("cluster.env",): of_cluster,
    ("s3.env", "lake.env"): of_store,
    ("postgres.env", "airflow.env"): of_airflow,
    ("redis.env", "celery.env"): of_broker,
}


def kustomization() -> str:
    """For kustomize: a Secret of each file, by the file's name. Spark's settings name two, so names have no hash."""
    names = [Path(name).stem for together in TOGETHER for name in together]
    secrets_of = "".join(f"  - {{name: {name}, envs: [{name}.env]}}\n" for name in names)
    return (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
        f"generatorOptions: {{disableNameSuffixHash: true}}\nsecretGenerator:\n{secrets_of}"
    )


def _line(text: str) -> str:
    """Text as one line, as env files want it."""
    return base64.b64encode(text.encode()).decode()


def main(folder: Path = FOLDER) -> int:
    """Write the files that are not there: the database keeps the password that it was made with."""
    wanted = [make for names, make in TOGETHER.items() if not all((folder / name).exists() for name in names)]
    try:
        made = [file for make in wanted for file in make().items()]
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"clickjoin: no certificate was made ({error}); install openssl", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    texts = [(name, "".join(f"{key}={value}\n" for key, value in values.items())) for name, values in made]
    for name, text in [*texts, ("kustomization.yaml", kustomization())]:
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
    print(f"secrets are in {folder}; the UI's user is admin, its password is in airflow.env")
    return 0


if __name__ == "__main__":
    sys.exit(main())
