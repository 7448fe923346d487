"""What the services count for Prometheus. No label takes a value from a request: each is one of a few."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_requests = Counter("twin_requests", "Requests answered or refused", ["service", "method", "status"])
_request_seconds = Histogram(
    "twin_request_seconds", "Time to the end of an answer", ["service"], buckets=_SECONDS
)
_predictions = Counter("twin_predictions", "Predictions asked of the served model", ["outcome"])
_prediction_seconds = Histogram(
    "twin_prediction_seconds", "Time of the served model for one request", buckets=_SECONDS
)


def request_answered(service: str, method: str, status: int, seconds: float) -> None:
    _requests.labels(service, method if method in _METHODS else "other", str(status)).inc()
    _request_seconds.labels(service).observe(seconds)


def predictions_made(answered: int, excused: int, rejected: int, seconds: float) -> None:
    for outcome, count in (("answered", answered), ("excused", excused), ("rejected", rejected)):
        _predictions.labels(outcome).inc(count)
    _prediction_seconds.observe(seconds)


def told() -> bytes:
    return generate_latest()
