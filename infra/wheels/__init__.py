"""The wheels `clickjoin` and `clickjoin-airflow`, built from the checkout by the locked uv, which needs no network."""
