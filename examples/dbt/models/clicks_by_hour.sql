SELECT date_trunc('hour', event_time) AS hour, count(*) AS clicks, median(event_time - primary_time) AS after_impression
FROM {{ ref("clicks") }}
GROUP BY ALL
ORDER BY hour
