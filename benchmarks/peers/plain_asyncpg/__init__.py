"""The yardstick for one connection: parse the JSON, upsert, answer. No checks, no event, no log line."""
