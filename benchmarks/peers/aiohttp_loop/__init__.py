"""The bare loop: signs and posts with aiohttp, and records nothing."""
