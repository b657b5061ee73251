"""What delta-rs is given for the store that a table lies in. Credentials it finds itself, where boto3 finds them."""

from __future__ import annotations

from clickjoin.model.places import S3, is_on_s3, store_of


def store_options(place: str) -> dict[str, str] | None:
    """Options for a table at a path or URI; None where it does not lie on S3."""
    if not is_on_s3(place):
        return None
    store, bucket = store_of(place), place.removeprefix(S3).partition("/")[0]
    # Without it delta-rs takes a server that is not Amazon's to know no profiles and no roles.
    found = {"AWS_FORCE_CREDENTIAL_LOAD": "true"}
    if store.region:
        found["AWS_REGION"] = store.region
    if store.endpoint:
        scheme, address = store.address
        host = address if store.path_style else f"{bucket}.{address}"
        found["AWS_ENDPOINT_URL"] = f"{scheme}://{host}"
        found["AWS_ALLOW_HTTP"] = str(not store.has_tls).lower()
        found["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(not store.path_style).lower()
    return found
