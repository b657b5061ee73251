{{ config(materialized="incremental", unique_key=["event_id", "event_time"]) }}

SELECT event_id, event_time, event_date, primary_id, primary_time, foreign_record, primary_record, published_at
FROM {{ source("clickjoin", "joined") }}
{% if is_incremental() %}
WHERE published_at >= (SELECT max(published_at) - INTERVAL 1 HOUR FROM {{ this }})
{% endif %}
